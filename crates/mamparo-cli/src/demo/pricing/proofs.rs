//! What must have come of it: decided on what the server and its clients saw.

use std::time::{Duration, SystemTime};

use http::{HeaderValue, StatusCode};
use mamparo::wire::codec::DeadlineHeader;
use mamparo_core::grpc::Code;

use super::scene::{WATCHES, Watched};
use super::server::{PUSHBACK, TICK};
use crate::demo::notes::{Noted, Priced};
use crate::demo::proof::Proof;
use crate::trace::millis;

/// How late the end of a stream may be, and how soon its server must stop.
const SOON: Duration = Duration::from_millis(100);

/// Checks every claim. `calls` and `attempts` are how many spans there are of the price's call, and below it.
pub(in crate::demo) fn proofs(
    noted: &Noted,
    quote: Option<StatusCode>,
    watched: &Watched,
    (calls, attempts): (usize, usize),
) -> Vec<Proof> {
    vec![
        resent(noted, quote, calls, attempts),
        deadline(noted),
        stream(noted, watched),
    ]
}

fn resent(noted: &Noted, quote: Option<StatusCode>, calls: usize, attempts: usize) -> Proof {
    let (gap, previous) = match &noted.priced[..] {
        [first, second] => (Some(second.at - first.at), second.previous.as_str()),
        _ => (None, ""),
    };
    let answered = quote == Some(StatusCode::OK);
    let patient = gap.is_some_and(|gap| gap >= PUSHBACK);
    Proof {
        name: "gRPC",
        holds: answered && patient && previous == "1" && (calls, attempts) == (1, 2),
        says: format!(
            "{calls} call, {attempts} attempts; the second came {} after the first, and was asked for after {}",
            gap.map_or("never".to_owned(), millis),
            millis(PUSHBACK)
        ),
    }
}

/// The call came in over HTTP, and went out over gRPC: with less time, each in its own header.
fn deadline(noted: &Noted) -> Proof {
    let given = noted.quoted;
    let lefts: Vec<_> = noted.priced.iter().filter_map(left).collect();
    let mut hops = vec![given];
    hops.extend(&lefts);
    let less = hops
        .windows(2)
        .all(|pair| !pair[1].is_zero() && pair[1] < pair[0]);
    let list = lefts.iter().map(|left| millis(*left));
    Proof {
        name: "gRPC deadline",
        holds: lefts.len() == 2 && less,
        says: format!(
            "the shop was given {} over HTTP, and gave its attempts {} over gRPC",
            millis(given),
            list.collect::<Vec<_>>().join(" and ")
        ),
    }
}

fn left(priced: &Priced) -> Option<Duration> {
    let value = HeaderValue::from_str(&priced.timeout).ok()?;
    // A relative time needs no clock.
    let told = DeadlineHeader::grpc_timeout().read(&value, SystemTime::UNIX_EPOCH);
    told.ok()?.duration()
}

fn stream(noted: &Noted, watched: &Watched) -> Proof {
    let after = Duration::from_millis(watched.after_ms);
    let in_time = after + SOON >= WATCHES && after <= WATCHES + SOON;
    let stopped = noted
        .unwatched
        .zip(watched.gave_up)
        .map(|(stopped, gave_up)| stopped.saturating_duration_since(gave_up));
    let status = watched.status.unwrap_or("no status");
    let most = WATCHES.as_millis() / TICK.as_millis() + 1;
    Proof {
        name: "gRPC stream",
        holds: status == Code::DeadlineExceeded.as_str()
            && in_time
            && (1..=most).contains(&u128::from(watched.prices))
            && u128::from(noted.ticks) <= most + 1
            && stopped.is_some_and(|after| after <= SOON),
        says: format!(
            "{} prices, then {status} after {}; the server stopped {}",
            watched.prices,
            millis(after),
            stopped.map_or("never".to_owned(), |after| format!(
                "{} later",
                millis(after)
            ))
        ),
    }
}
