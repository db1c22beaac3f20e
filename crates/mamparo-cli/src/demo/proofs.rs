//! What must have come of it: decided on what servers and client saw.

use std::time::Duration;

use http::StatusCode;

use super::cast::BROKEN_ITEM;
use super::notes::Noted;
use super::proof::Proof;
use super::shop::STOCK_TAKES;
use super::traffic::Seen;
use crate::trace::millis;

/// How soon a handler must stop after its caller gave up.
const STOPS_WITHIN: Duration = Duration::from_millis(50);

/// How many attempts an operation makes at most, in each of the stacks.
const MAX_ATTEMPTS: u32 = 3;

/// Checks every claim. `services` is how many took part in one order's trace, `late` how many handlers were reported late.
pub(super) fn proofs(noted: &Noted, seen: &Seen, services: usize, late: u64) -> Vec<Proof> {
    vec![
        charge(noted, seen),
        pages(seen),
        deadline(noted, seen),
        stop(noted, seen),
        late_work(late),
        no_multiplying(noted, seen),
        no_second_mail(noted, seen),
        one_trace(services),
    ]
}

fn charge(noted: &Noted, seen: &Seen) -> Proof {
    let of = |key: &String| noted.charges.get(key).cloned().unwrap_or_default();
    let effects: u32 = seen.orders.iter().map(|(key, _)| of(key).effects).sum();
    let attempts: u32 = seen.orders.iter().map(|(key, _)| of(key).requests).sum();
    let created =
        |(_, status): &&(String, Option<StatusCode>)| *status == Some(StatusCode::CREATED);
    let answers = seen.orders.iter().filter(created).count();
    let orders = seen.orders.len();
    let each = seen
        .orders
        .iter()
        .all(|(key, _)| (of(key).effects, of(key).requests) == (1, 2));
    Proof {
        name: "charge",
        holds: orders > 0 && each && answers == orders,
        says: if each && answers == orders {
            format!("1 effect, 2 attempts, 1 answer, for each of {orders} orders")
        } else {
            format!("{orders} orders, {effects} effects, {attempts} attempts, {answers} answers")
        },
    }
}

fn pages(seen: &Seen) -> Proof {
    Proof {
        name: "pages",
        holds: seen.pages_answered * 10 >= seen.pages * 9,
        says: format!(
            "{} of {} answered, though catalog is flaky and reviews are slow",
            seen.pages_answered, seen.pages
        ),
    }
}

/// Each order took a while before it charged: the payment provider must have been given that much less.
fn deadline(noted: &Noted, seen: &Seen) -> Proof {
    let hops = seen
        .orders
        .iter()
        .filter_map(|(key, _)| Some((*noted.given.get(key)?, noted.charges.get(key)?.given)));
    let hops: Vec<_> = hops.collect();
    let less = |&(first, second): &(Duration, Duration)| {
        !second.is_zero() && second + STOCK_TAKES <= first
    };
    let (first, second) = hops.first().copied().unwrap_or_default();
    Proof {
        name: "deadline",
        holds: !hops.is_empty() && hops.iter().all(less),
        says: format!(
            "the shop was given {}, worked for {}, and gave the payment provider {}",
            millis(first),
            millis(STOCK_TAKES),
            millis(second)
        ),
    }
}

fn stop(noted: &Noted, seen: &Seen) -> Proof {
    let after = noted
        .stopped
        .map(|at| at.saturating_duration_since(seen.gave_up));
    Proof {
        name: "given up",
        holds: after.is_some_and(|after| after <= STOPS_WITHIN),
        says: match after {
            Some(Duration::ZERO) => "the handler had stopped when its caller gave up".to_owned(),
            Some(after) => format!(
                "the handler stopped {} after its caller gave up",
                millis(after)
            ),
            None => "the handler still runs".to_owned(),
        },
    }
}

fn late_work(late: u64) -> Proof {
    Proof {
        name: "late work",
        holds: late > 0,
        says: format!("{late} reported: a handler blocked past its deadline"),
    }
}

/// Two retries are on the way to the catalog, the client's and the shop's, and one of them owns the resends.
fn no_multiplying(noted: &Noted, seen: &Seen) -> Proof {
    let path = format!("/items/{BROKEN_ITEM}");
    let reached = noted.requests.get(&path).copied().unwrap_or(0);
    let most = MAX_ATTEMPTS * MAX_ATTEMPTS;
    Proof {
        name: "two retries",
        holds: reached == MAX_ATTEMPTS && seen.broken_page == Some(StatusCode::SERVICE_UNAVAILABLE),
        says: format!("a broken item was asked for {reached} times, not {most}"),
    }
}

fn no_second_mail(noted: &Noted, seen: &Seen) -> Proof {
    let sent = noted.requests.get("/mails").copied().unwrap_or(0);
    let marked = if seen.mail.indeterminate {
        "indeterminate"
    } else {
        "not marked"
    };
    Proof {
        name: "no key",
        holds: (sent, seen.mail.attempts, seen.mail.indeterminate) == (1, 1, true),
        says: format!("a mail whose answer was lost was sent {sent} time, and is {marked}"),
    }
}

fn one_trace(services: usize) -> Proof {
    Proof {
        name: "trace",
        holds: services >= 2,
        says: format!("one order, one trace, {services} services"),
    }
}
