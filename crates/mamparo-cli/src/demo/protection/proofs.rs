//! What must have come of each scene.

use super::breaker::{Outage, PROBES, Step, THRESHOLD};
use super::bulkhead::Starved;
use super::hedge::Tail;
use super::partial::Pages;
use super::run::Protection;
use crate::demo::proof::Proof;

/// A rejection takes less than this, in microseconds: no dependency answers so soon.
const SOON_US: f64 = 1_000.0;

/// A hedge may add one request to so many.
const EXTRA_ONE_IN: u32 = 7;

/// Checks every claim.
pub(in crate::demo) fn proofs(found: &Protection) -> Vec<Proof> {
    let mut proofs = vec![
        opens(&found.breaker),
        rejects(&found.breaker),
        recovers(&found.breaker),
    ];
    if let [without, with] = &found.bulkhead[..] {
        proofs.push(healthy(without, with));
    }
    if let [without, with] = &found.hedge[..] {
        proofs.push(tail(without, with));
    }
    proofs.push(partial(&found.fallback));
    proofs
}

/// What opened it, what was under way then, and the probes of each half-open state: nothing else reached the dependency.
fn opens(outage: &Outage) -> Proof {
    let (made, reached) = (outage.while_down, outage.reached_while_down);
    let states = outage.bands.iter().map(|band| band.state);
    let half_open = states.filter(|state| *state == "half_open").count() as u32;
    // A success that overtakes failures begins their row anew.
    let most = 2 * THRESHOLD + outage.under_way + PROBES * half_open;
    Proof {
        name: "breaker",
        holds: half_open >= 2 && reached >= THRESHOLD && reached <= most && reached * 3 <= made,
        says: format!("{reached} of {made} calls reached a dependency while it was down"),
    }
}

fn rejects(outage: &Outage) -> Proof {
    let (rejected, within) = (outage.rejected, outage.rejected_within_us);
    Proof {
        name: "rejections",
        holds: rejected > 0 && within < SOON_US,
        says: format!("half of {rejected} took less than {within:.0} µs"),
    }
}

fn recovers(outage: &Outage) -> Proof {
    let share = |steps: &[Step]| {
        let offered: u32 = steps.iter().map(|step| step.offered).sum();
        let admitted: u32 = steps.iter().map(|step| step.admitted).sum();
        f64::from(admitted) / f64::from(offered)
    };
    let shares: Vec<_> = outage
        .ramp
        .iter()
        .map(|&step| format!("{:.0} %", share(&[step]) * 100.0))
        .collect();
    let grows = match &outage.ramp[..] {
        [first, second, third, fourth, after] => {
            share(&[*first, *second]) < share(&[*third, *fourth])
                && after.offered > 0
                && after.admitted == after.offered
        }
        _ => false,
    };
    Proof {
        name: "ramp",
        holds: grows,
        says: format!(
            "it closed, and of each quarter of a second admitted {}",
            shares.join(", ")
        ),
    }
}

fn healthy(without: &Starved, with: &Starved) -> Proof {
    Proof {
        name: "bulkhead",
        holds: with.p99_ms * 2.0 < without.p99_ms && with.answered == with.healthy,
        says: format!(
            "beside a slow dependency, the p99 of a healthy one was {:.0} ms instead of {:.0} ms",
            with.p99_ms, without.p99_ms
        ),
    }
}

fn tail(without: &Tail, with: &Tail) -> Proof {
    let extra = with.sent.saturating_sub(with.requests);
    Proof {
        name: "hedge",
        holds: with.p99_ms * 2.0 < without.p99_ms && extra * EXTRA_ONE_IN <= with.requests,
        says: format!(
            "p99 {:.0} ms instead of {:.0} ms, for {extra} requests more than {}",
            with.p99_ms, without.p99_ms, with.requests
        ),
    }
}

fn partial(pages: &Pages) -> Proof {
    let Pages {
        pages: asked,
        answered,
        unavailable,
        partial,
        wrongly_marked,
        no_such_page,
    } = pages;
    Proof {
        name: "fallback",
        holds: answered == asked
            && partial == unavailable
            && *unavailable > 0
            && (*wrongly_marked, *no_such_page) == (0, 404),
        says: format!(
            "{answered} of {asked} pages answered, {partial} of them marked partial, and a 404 stayed one"
        ),
    }
}
