//! Groups of the protecting layers: each alone, the whole stack, rejections, and what must not depend on the traffic.

use std::time::Duration;

use super::floor::Floor;
use super::traffic::{at_once, refuses, small, tenth_failing};
use super::{Case, Group, ours, peers, tower_own, tower_resilience};

/// Each of them on a service that answers at once, and with nothing to protect from.
pub(super) fn alone() -> Group {
    const WINDOW: Duration = Duration::from_secs(10);
    let ours = vec![
        Case::calls("our breaker", small, || Ok(ours::breaker(at_once()))),
        Case::calls("our breaker, over 100 calls", small, || {
            ours::breaker_counting(at_once())
        }),
        Case::calls("our breaker, over 10 s", small, || {
            ours::breaker_timing(WINDOW, at_once())
        }),
        Case::calls("our bulkhead", small, || ours::bulkhead(at_once())),
        Case::calls("our rate limit", small, || ours::rate_limit(at_once())),
        Case::calls("our load shed", small, || ours::load_shed(at_once())),
        Case::calls("our hedge", small, || ours::hedge(at_once())),
        Case::calls("our fallback", small, || Ok(ours::fallback(at_once()))),
    ];
    let peers = vec![
        Case::calls("bare, unprotected", small, || Ok(at_once())),
        Case::calls("failsafe", small, || Ok(peers::failsafe(at_once()))),
        Case::calls("recloser", small, || Ok(peers::recloser(at_once()))),
        Case::calls("seatbelt breaker", small, || Ok(peers::seatbelt(at_once()))),
        Case::calls("tower-resilience breaker", small, || {
            tower_resilience::breaker(at_once())
        }),
        Case::calls("tower ConcurrencyLimit", small, || {
            Ok(tower_own::limit(at_once()))
        }),
        Case::calls("tower ConcurrencyLimit and LoadShed", small, || {
            Ok(tower_own::shed(at_once()))
        }),
        Case::calls("tower-resilience bulkhead", small, || {
            tower_resilience::bulkhead(at_once())
        }),
        Case::calls("governor", small, || Ok(peers::governor(at_once()))),
        Case::calls("tower-resilience rate limiter", small, || {
            tower_resilience::rate_limiter(at_once())
        }),
    ];
    Group {
        name: "protecting layers alone",
        cases: peers.into_iter().chain(ours).collect(),
    }
}

/// Deadline, bulkhead, retry with budget, breaker and attempt timeout, as far as each library has them.
pub(super) fn whole() -> Group {
    Group {
        name: "whole stack",
        cases: vec![
            Case::calls("bare, without a stack", small, || Ok(at_once())),
            Case::calls("floor of it", small, || Ok(Floor::new(at_once()))),
            Case::calls("tower whole stack", small, || tower_own::whole(at_once())),
            Case::calls("tower-resilience whole stack", small, || {
                tower_resilience::whole(at_once())
            }),
            Case::calls("our whole stack", small, || ours::whole(at_once())),
        ],
    }
}

/// Calls that are refused, beside a service that refuses by hand.
pub(super) fn rejections() -> Group {
    let ours = vec![
        Case::calls("our breaker, open", small, || {
            Ok(ours::breaker_open(at_once()))
        }),
        Case::calls("our bulkhead, full", small, || {
            ours::bulkhead_full(at_once())
        }),
        Case::calls("our rate limit, used up", small, || {
            ours::rate_limit_used_up(at_once())
        }),
        Case::calls("our load shed, overloaded", small, || {
            ours::overloaded(at_once())
        }),
        Case::calls("our whole stack, breaker open", small, || {
            ours::whole_open(at_once())
        }),
        Case::calls("our whole stack, bulkhead full", small, || {
            ours::whole_full(at_once())
        }),
    ];
    let peers = vec![
        Case::calls("refused by hand", small, || Ok(refuses())),
        Case::calls("failsafe, open", small, || {
            Ok(peers::failsafe_open(at_once()))
        }),
        Case::calls("recloser, open", small, || {
            Ok(peers::recloser_open(at_once()))
        }),
        Case::calls("tower-resilience breaker, open", small, || {
            tower_resilience::breaker_open(at_once())
        }),
        Case::calls("tower-resilience whole stack, open", small, || {
            tower_resilience::whole_open(at_once())
        }),
        Case::calls("tower ConcurrencyLimit and LoadShed, full", small, || {
            Ok(tower_own::full(at_once()))
        }),
        Case::calls("tower whole stack, full", small, || {
            tower_own::whole_full(at_once())
        }),
        Case::calls("governor, used up", small, || {
            Ok(peers::governor_used_up(at_once()))
        }),
    ];
    Group {
        name: "rejections",
        cases: peers.into_iter().chain(ours).collect(),
    }
}

/// A breaker whose window holds what ten seconds leave in it at 50 and at 50 000 calls a second; and one of many.
pub(super) fn constant() -> Group {
    Group {
        name: "constant cost",
        cases: vec![
            Case::calls("bare, uncounted", small, || Ok(at_once())),
            filled("500 calls in the window", 500, || {
                Case::calls("", small, || ours::breaker_timing(LONG, at_once()))
            }),
            filled("500 000 calls in the window", 500_000, || {
                Case::calls("", small, || ours::breaker_timing(LONG, at_once()))
            }),
            filled("500 calls, each tenth failed", 500, || {
                Case::calls("", small, || ours::breaker_timing(LONG, tenth_failing()))
            }),
            filled("500 000 calls, each tenth failed", 500_000, || {
                Case::calls("", small, || ours::breaker_timing(LONG, tenth_failing()))
            }),
            Case::calls("a new key and its breaker", small, || {
                ours::breakers_by_key(at_once())
            }),
        ],
    }
}

/// So long that nothing leaves the window while a case runs.
const LONG: Duration = Duration::from_secs(3600);

/// A case whose service has done so many calls before.
fn filled(name: &'static str, before: u64, case: fn() -> Case) -> Case {
    Case::new(name, case().future, move || {
        let mut work = case().make()?;
        work(before);
        Ok(work)
    })
}
