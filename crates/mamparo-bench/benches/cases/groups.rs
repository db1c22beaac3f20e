//! The groups.

use tower::Layer;

use super::floor::Floor;
use super::traffic::{at_once, copies, later, rich, small};
use super::{Case, Group, ours, protecting, reqwest_retry, spans, tower_own, tower_resilience};

/// Where the counts of `allocations` wait for the table of `speed`: group, case, allocations and bytes of a call.
pub(crate) const COUNTS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/mamparo-allocations.tsv");

/// All groups, in the order of the table.
pub(crate) fn groups() -> Vec<Group> {
    vec![
        ready(),
        protecting::alone(),
        protecting::whole(),
        protecting::rejections(),
        protecting::constant(),
        pending(),
        http(),
        http_with_headers(),
        of_policies(),
        reqwest(),
        spans::attempts(),
        spans::rpcs(),
    ]
}

/// The layers of any service, around one that answers at once.
fn ready() -> Group {
    Group {
        name: "answered at once",
        cases: vec![
            Case::calls("bare service", small, || Ok(at_once())),
            Case::calls("floor", small, || Ok(Floor::new(at_once()))),
            Case::calls("tower timeout", small, || Ok(tower_own::timeout(at_once()))),
            Case::calls("tower retry", small, || tower_own::retry(at_once())),
            Case::calls("tower stack", small, || tower_own::stack(at_once())),
            Case::calls("tower-resilience time limiter", small, || {
                Ok(tower_resilience::time_limiter(at_once()))
            }),
            Case::calls("tower-resilience retry", small, || {
                tower_resilience::retry(at_once())
            }),
            Case::calls("tower-resilience stack", small, || {
                tower_resilience::stack(at_once())
            }),
            Case::calls("our deadline", small, || ours::deadline(at_once())),
            Case::calls("our retry", small, || Ok(ours::retry(at_once()))),
            Case::calls("our attempt timeout", small, || {
                ours::attempt_timeout(at_once())
            }),
            Case::calls("our stack", small, || ours::stack(at_once())),
        ],
    }
}

/// The same, around a service that is pending once: timers are registered.
fn pending() -> Group {
    Group {
        name: "pending once",
        cases: vec![
            Case::calls("bare pending", small, || Ok(later())),
            Case::calls("floor pending", small, || Ok(Floor::new(later()))),
            Case::calls("tower stack pending", small, || tower_own::stack(later())),
            Case::calls("tower-resilience stack pending", small, || {
                tower_resilience::stack(later())
            }),
            Case::calls("our stack pending", small, || ours::stack(later())),
            Case::calls("tower whole stack pending", small, || {
                tower_own::whole(later())
            }),
            Case::calls("tower-resilience whole stack pending", small, || {
                tower_resilience::whole(later())
            }),
            Case::calls("our whole stack pending", small, || ours::whole(later())),
        ],
    }
}

/// The layers of HTTP; the request has neither headers nor a body.
fn http() -> Group {
    Group {
        name: "HTTP",
        cases: vec![
            Case::calls("bare HTTP", small, || Ok(at_once())),
            Case::calls("our HTTP stack", small, || ours::http(at_once())),
            Case::calls(
                "our whole HTTP stack",
                small,
                || ours::whole_http(at_once()),
            ),
        ],
    }
}

/// The same with a request's usual headers, beside a service that only copies the request.
fn http_with_headers() -> Group {
    Group {
        name: "HTTP, 8 headers",
        cases: vec![
            Case::calls("bare, and a copy of the request", rich, || {
                Ok(copies(at_once()))
            }),
            Case::calls("our HTTP stack, 8 headers", rich, || ours::http(at_once())),
            Case::calls("our whole HTTP stack, 8 headers", rich, || {
                ours::whole_http(at_once())
            }),
        ],
    }
}

/// A stack by hand, beside the same from a policy file.
fn of_policies() -> Group {
    Group {
        name: "policies",
        cases: vec![
            Case::calls("a stack by hand", small, || {
                Ok(ours::by_hand()?.layer(at_once()))
            }),
            Case::calls("the same from a file", small, || {
                Ok(ours::from_a_file()?.layer(at_once()))
            }),
        ],
    }
}

/// What a retry around reqwest costs, beside the middlewares that carry it.
fn reqwest() -> Group {
    Group {
        name: "reqwest-middleware",
        cases: vec![
            Case::calls("middlewares alone", || (), reqwest_retry::bare),
            Case::calls("reqwest-retry", || (), reqwest_retry::retry),
        ],
    }
}
