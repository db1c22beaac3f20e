use http::HeaderMap;
use proptest::prelude::*;

use super::super::{Admission, DEFAULT_TOLERATED, DeadlineHeaders, MAX_SAVED_REJECTIONS, Skew};
use super::forms::*;

/// Asks about a request with these headers.
fn admit<const N: usize>(skew: &Skew, headers: [(&'static str, String); N]) -> Admission {
    let set = DeadlineHeaders::new(every_form().into_iter().skip(1)).unwrap();
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name, value.parse().unwrap());
    }
    skew.admit(&set.read_all(&map, wall()))
}

fn late_by(late: Duration) -> [(&'static str, String); 1] {
    [(
        "at-millis",
        (1_700_000_000_000 - late.as_millis()).to_string(),
    )]
}

fn minute_late() -> [(&'static str, String); 1] {
    late_by(Duration::from_secs(60))
}

fn on_time() -> [(&'static str, String); 1] {
    [("at-millis", "1700000001000".to_owned())]
}

#[test]
fn relative_headers_are_believed_as_they_stand() {
    let skew = Skew::new(Duration::from_secs(3_600), 0).unwrap();
    let millis = |value: &str| [("in-millis", value.to_owned())];
    assert_eq!(admit(&skew, millis("0")), Admission::Expired);
    assert_eq!(
        admit(&skew, millis("5")),
        Admission::Within(Some(Duration::from_millis(5)))
    );
    assert_eq!(admit(&skew, []), Admission::Within(None));
    let envoy = [("x-envoy-expected-rq-timeout-ms", "0".to_owned())];
    assert_eq!(admit(&skew, envoy), Admission::Within(None));
}

#[test]
fn an_absolute_deadline_ahead_limits_the_request_to_what_remains() {
    let skew = Skew::default();
    assert_eq!(
        admit(&skew, on_time()),
        Admission::Within(Some(Duration::from_secs(1)))
    );
}

#[test]
fn a_deadline_that_is_late_by_no_more_than_the_tolerated_skew_does_not_reject() {
    let skew = Skew::new(DEFAULT_TOLERATED, 100).unwrap();
    let just = DEFAULT_TOLERATED + Duration::from_millis(1);
    assert_eq!(
        admit(&skew, late_by(DEFAULT_TOLERATED)),
        Admission::Doubted(None)
    );
    assert_eq!(
        admit(&skew, late_by(Duration::ZERO)),
        Admission::Doubted(None)
    );
    assert_eq!(admit(&skew, late_by(just)), Admission::Expired);
}

/// DH-02
#[test]
fn a_relative_header_with_time_left_overrules_an_absolute_one_that_is_late() {
    let skew = Skew::new(Duration::ZERO, 100).unwrap();
    let [late] = minute_late();
    let both = [late.clone(), ("in-millis", "200".to_owned())];
    assert_eq!(
        admit(&skew, both),
        Admission::Doubted(Some(Duration::from_millis(200)))
    );
    let both = [late, ("in-millis", "0".to_owned())];
    assert_eq!(admit(&skew, both), Admission::Expired);
}

#[test]
fn a_peer_with_a_wrong_clock_loses_one_request_of_ten() {
    let skew = Skew::default();
    let admissions: Vec<_> = (0..100).map(|_| admit(&skew, minute_late())).collect();
    let rejected = admissions
        .iter()
        .filter(|a| **a == Admission::Expired)
        .count();
    assert_eq!(rejected, 10);
    assert!(
        admissions
            .chunks(10)
            .all(|ten| ten[9] == Admission::Expired)
    );
}

#[test]
fn rejections_are_saved_up_to_their_bound_while_requests_are_on_time() {
    let skew = Skew::default();
    for _ in 0..10_000 {
        assert_ne!(admit(&skew, on_time()), Admission::Expired);
    }
    let rejected = (0..100)
        .filter(|_| admit(&skew, minute_late()) == Admission::Expired)
        .count();
    // The first of them finds the savings full, and so earns nothing.
    assert_eq!(rejected, MAX_SAVED_REJECTIONS as usize + 9);
}

#[test]
fn requests_without_an_absolute_header_earn_no_rejections() {
    let skew = Skew::default();
    for _ in 0..1_000 {
        assert_eq!(admit(&skew, []), Admission::Within(None));
    }
    assert_eq!(admit(&skew, minute_late()), Admission::Doubted(None));
}

#[test]
fn a_share_of_more_than_all_is_refused() {
    assert_eq!(Skew::new(Duration::ZERO, 101).unwrap_err().value(), "101");
}

#[test]
fn threads_together_reject_no_more_than_the_share() {
    let skew = Skew::default();
    let rejected: usize = std::thread::scope(|scope| {
        let ask = || {
            (0..1_000)
                .filter(|_| admit(&skew, minute_late()) == Admission::Expired)
                .count()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(rejected, 400);
}

proptest! {
    #[test]
    fn rejections_never_exceed_their_share(percent in 0..=100_u32, late in prop::collection::vec(any::<bool>(), 1..400)) {
        let skew = Skew::new(DEFAULT_TOLERATED, percent).unwrap();
        let mut rejected = 0;
        for (seen, late) in (1_u32..).zip(late) {
            let admission = admit(&skew, if late { minute_late() } else { on_time() });
            rejected += u32::from(admission == Admission::Expired);
            prop_assert!(rejected * 100 <= percent * seen, "{rejected} of {seen} at {percent} %");
        }
    }
}
