use std::time::Duration;

use proptest::prelude::*;

use crate::plan::{Load, PRICES, million};

fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}

#[test]
fn as_many_schedules_are_active_as_come_in_while_one_waits() {
    let load = Load::new(20.0, hours(4)).unwrap();
    assert_eq!(load.active(), 288_000.0);
    assert!(
        load.needs()
            .iter()
            .all(|need| need.fits() && need.fits_everywhere())
    );
}

#[test]
fn a_load_beyond_a_quota_says_so_and_whether_more_can_be_asked_for() {
    let needs = Load::new(600.0, hours(5)).unwrap().needs();
    let [active, made, fired, units, taken] = needs;
    assert_eq!(
        (active.amount, active.fits(), active.adjustable),
        (10_800_000.0, false, true)
    );
    assert_eq!((made.fits(), made.fits_everywhere()), (true, false));
    assert_eq!((fired.fits(), fired.fits_everywhere()), (true, false));
    assert!(units.fits() && taken.fits());
    let [.., taken] = Load::new(1e6, hours(1)).unwrap().needs();
    assert!(!taken.fits() && !taken.adjustable);
}

#[test]
fn a_load_that_makes_no_sense_is_refused() {
    let refused = |rate: f64, wait| Load::new(rate, wait).unwrap_err().to_string();
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7] {
        assert!(refused(rate, hours(1)).contains("must be above 0 and at most 1000000 a second"));
    }
    assert!(refused(1.0, hours(24 * 366)).contains("at most a year"));
}

#[test]
fn a_million_deferrals_cost_what_their_parts_do() {
    let parts: f64 = PRICES
        .iter()
        .map(|price| price.units * price.per_million)
        .sum();
    assert!((million() - parts).abs() < 1e-9);
    let month = Load::new(1.0, hours(1)).unwrap().a_month();
    assert!((month / million() - 2.6298).abs() < 1e-9);
}

proptest! {
    #[test]
    fn more_a_second_or_a_longer_wait_never_needs_less(
        rate in 0.001..1_000.0_f64, more in 1.0..10.0_f64, wait in 1_u64..100_000, longer in 1_u64..100,
    ) {
        let small = Load::new(rate, Duration::from_secs(wait)).unwrap();
        let large = Load::new(rate * more, Duration::from_secs(wait * longer)).unwrap();
        prop_assert!(large.active() >= small.active());
        for (large, small) in large.needs().iter().zip(small.needs()) {
            prop_assert!(large.amount >= small.amount);
        }
    }
}
