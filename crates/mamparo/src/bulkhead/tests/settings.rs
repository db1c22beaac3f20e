//! What is refused when a policy is built, by name (row J11).

use std::time::Duration;

use mamparo_core::{InvalidSetting, Tenant};

use super::super::*;
use super::cast::*;

fn refused<T>(result: Result<T, InvalidSetting>) -> (&'static str, String) {
    let error = result.err().expect("a refusal");
    (error.setting(), error.value().to_owned())
}

/// Row J11.
#[test]
fn nonsense_is_refused_by_name() {
    assert_eq!(refused(sized(0, 1).build()), ("limit", "0".into()));
    let no_wait = sized(1, 1).max_wait(Duration::ZERO);
    assert_eq!(refused(no_wait.build()), ("max_wait", "0s".into()));
    let partitions = Partitions::builder().build().unwrap();
    let pressed = sized(1, 1).partitions(partitions).back_pressure();
    assert_eq!(refused(pressed.build()), ("back_pressure", "true".into()));
    for (guaranteed, burst) in [(0, 0), (60, 50), (0, 101)] {
        assert_eq!(refused(Share::percent(guaranteed, burst)).0, "share");
    }
    let half = Share::percent(51, 100).unwrap();
    let tenants = |names: &[&str]| {
        let builder = Partitions::builder();
        let named = names.iter().map(|name| Tenant::of(name));
        named
            .fold(builder, |builder, name| builder.tenant(name, half))
            .build()
    };
    assert_eq!(refused(tenants(&["a", "a"])).0, "partitions");
    assert_eq!(refused(tenants(&["a", "b"])).1, "102 % guaranteed");
    let many: Vec<String> = (0..=MOST_PARTITIONS)
        .map(|number| number.to_string())
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(refused(tenants(&many)).1, "65");
}

/// Row J11.
#[test]
fn nonsense_of_an_adaptive_limit_is_refused_by_name() {
    let builder = || AdaptiveLimit::builder(Aimd::default());
    assert_eq!(refused(builder().floor(0).build()).0, "floor");
    assert_eq!(refused(builder().ceiling(3).build()).0, "ceiling");
    for headroom in [f64::NAN, 1.0, f64::INFINITY] {
        assert_eq!(refused(builder().headroom(headroom).build()).0, "headroom");
    }
    assert_eq!(
        refused(builder().window(Duration::ZERO).build()).0,
        "window"
    );
    assert_eq!(refused(builder().memory(millis(999)).build()).0, "memory");
    assert_eq!(refused(Aimd::new(f64::NAN)).0, "factor");
    assert_eq!(refused(Gradient2::tolerating(f64::NAN)).0, "tolerance");
    let outside = sized(2_000, 0).adaptive(builder().build().unwrap());
    assert_eq!(refused(outside.build()), ("limit", "2000".into()));
}

#[test]
fn a_limit_that_cannot_be_counted_is_the_largest_that_can() {
    let policy = sized(usize::MAX, usize::MAX).build().unwrap();
    assert_eq!(
        (policy.limit(), policy.max_waiting()),
        (MOST_PLACES, MOST_PLACES)
    );
    assert_eq!(
        plain(sized(usize::MAX, usize::MAX)).handle().limit(),
        MOST_PLACES
    );
    let widest = AdaptiveLimit::builder(Vegas)
        .ceiling(usize::MAX)
        .build()
        .unwrap();
    assert_eq!(widest.bounds(), 4..=MOST_PLACES);
}
