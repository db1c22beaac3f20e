//! What requests are worth.

use http::{HeaderName, Request, Response};
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, ServiceExt};

use super::super::*;
use super::cast::*;

const WORTH: HeaderName = HeaderName::from_static("x-priority");

fn of(values: &[&[u8]], at_most: Priority) -> Option<Priority> {
    let mut request = Request::new(());
    for value in values {
        request
            .headers_mut()
            .append(WORTH, http::HeaderValue::from_bytes(value).unwrap());
    }
    ByHeader {
        name: WORTH,
        at_most,
    }
    .priority(&request)
}

/// Row K5: what an outsider writes is bounded, and changes nothing for others.
#[test]
fn a_header_is_believed_only_so_far() {
    use Priority::{Critical, High, Normal, Sheddable};
    assert_eq!(of(&[], Critical), Some(Normal));
    assert_eq!(of(&[b"high"], Critical), Some(High));
    assert_eq!(of(&[b"critical"], Normal), Some(Normal));
    assert_eq!(of(&[b"sheddable"], Normal), Some(Sheddable));
    let nonsense: [&[u8]; 6] = [
        b"99999",
        b"-1",
        b"CRITICAL",
        b"",
        b"\xff\xfe",
        b"critical, high",
    ];
    for value in nonsense {
        assert_eq!(of(&[value], Critical), Some(Sheddable), "{value:?}");
    }
    assert_eq!(of(&[b"critical", b"high"], Critical), Some(High));
    assert_eq!(of(&[], Sheddable), Some(Sheddable));
}

/// Row K5.
#[tokio::test(start_paused = true)]
async fn a_flood_of_claims_leaves_room_for_what_is_known_to_be_worth_more() {
    let peer: Script<Request<()>, Response<&str>, ()> =
        Script::noting(|_| (), []).otherwise(Step::hang);
    let layer = LoadShedLayer::new(
        policy().max_in_flight(8).build().unwrap(),
        mamparo_core::Plain::idempotent(),
    )
    .priority_header(WORTH, Priority::Normal);
    let jobs = layer.layer(peer);
    let mut running = Vec::new();
    for _ in 0..20 {
        let claim = Request::builder()
            .header(WORTH, "critical")
            .body(())
            .unwrap();
        running.push(tokio::spawn(jobs.clone().oneshot(claim)));
    }
    tokio::task::yield_now().await;
    assert_eq!(
        layer.in_flight(),
        Some(6),
        "three quarters are for normal ones"
    );
}

#[tokio::test(start_paused = true)]
async fn the_lower_priority_is_shed_first_whatever_the_rule() {
    let peer: Script<Priority, u32> = Script::new([]).otherwise(Step::hang);
    let layer = shed(policy().max_in_flight(10)).priority(|request: &Priority| *request);
    let jobs = layer.layer(peer.clone());
    let mut running = Vec::new();
    let all = [
        Priority::Sheddable,
        Priority::Normal,
        Priority::High,
        Priority::Critical,
    ];
    let mut most = Vec::new();
    for priority in all {
        for _ in 0..10 {
            running.push(tokio::spawn(jobs.clone().oneshot(priority)));
        }
        tokio::task::yield_now().await;
        most.push(peer.running());
    }
    assert_eq!(most, [5, 8, 9, 10]);
}

#[test]
fn names_are_read_back() {
    for priority in [
        Priority::Sheddable,
        Priority::Normal,
        Priority::High,
        Priority::Critical,
    ] {
        assert_eq!(Priority::named(priority.as_str()), Some(priority));
    }
}
