//! The decisions, over any load; no clock, no service.

use proptest::prelude::*;

use super::super::state::{allowed, drains_no_more, rejection, waited_too_long};

fn share() -> impl Strategy<Value = f64> {
    0.01_f64..=1.0
}

proptest! {
    /// Whatever the load, a lower share never lets pass what a higher one does not.
    #[test]
    fn what_has_the_higher_share_is_shed_later(
        (low, high) in (share(), share()).prop_map(|(a, b)| (a.min(b), a.max(b))),
        limit: usize,
        (requests, accepts) in (0_u32..1_000_000, 0_u32..1_000_000),
        k in 1.0_f64..10.0,
        (waited, target) in (0_u64..10_000, 1_u64..5_000),
    ) {
        prop_assert!(allowed(limit, low) <= allowed(limit, high));
        let rejection = |share| rejection(requests, accepts.min(requests), k, share, 1.0);
        prop_assert!(rejection(low) >= rejection(high));
        prop_assert!(waited_too_long(waited, target, low) >= waited_too_long(waited, target, high));
    }

    /// Probabilities are in [0, 1], and limits in what was set.
    #[test]
    fn nothing_leaves_its_range(
        share in share(),
        limit in 1_usize..,
        (requests, accepts) in any::<(u32, u32)>(),
        k in 1.0_f64..1e300,
        most in 0.01_f64..=1.0,
    ) {
        let probability = rejection(requests, accepts, k, share, most);
        prop_assert!((0.0..=most).contains(&probability));
        prop_assert!((1..=limit as u64).contains(&allowed(limit, share)));
    }
}

/// The formula of "Handling Overload": max(0, (requests − k · accepts) / (requests + 1)).
#[test]
fn a_call_is_rejected_by_the_published_formula() {
    let by = |requests, accepts| rejection(requests, accepts, 2.0, 1.0, 1.0);
    assert_eq!(by(0, 0), 0.0);
    assert_eq!(by(99, 50), 0.0);
    assert_eq!(by(99, 0), 0.99);
    assert_eq!(by(99, 24), 0.51);
    assert_eq!(rejection(99, 0, 2.0, 1.0, 0.95), 0.95);
}

#[test]
fn a_queue_that_drained_once_in_an_interval_is_not_overloaded() {
    let (interval, target) = (100, 5);
    let after = |now, shortest| drains_no_more(100, now, interval, shortest, target);
    assert!(after(100, Some(6)));
    assert!(
        !after(100, Some(5)),
        "one call waited no longer than the target"
    );
    assert!(!after(100, None), "no call came");
    assert!(after(199, Some(6)));
    assert!(!after(200, Some(6)), "for a whole interval no call came");
}

#[test]
fn the_largest_limit_stays_as_it_is() {
    assert_eq!(allowed(usize::MAX, 1.0), u64::MAX);
    assert_eq!(allowed(1, 0.5), 1);
    assert_eq!(allowed(10, 0.75), 8);
}
