//! Which method's config is found, and which tables are refused.

use mamparo_core::grpc::{Code, Codes};
use proptest::prelude::*;

use super::cast::*;
use crate::grpc::{HedgePlan, MAX_NAMES, MethodConfig, Resends, RetryPlan, ServiceConfig};

fn within(seconds: u64) -> MethodConfig {
    MethodConfig::new().within(std::time::Duration::from_secs(seconds))
}

fn seconds(config: &ServiceConfig, path: &str) -> Option<u64> {
    config.timeout(path).map(|timeout| timeout.as_secs())
}

#[test]
fn a_method_goes_before_its_service_and_that_before_the_default() {
    let config = ServiceConfig::builder()
        .all(within(1))
        .service("shop.Catalog", within(2))
        .method("shop.Catalog", "Search", within(3));
    let config = config.build().unwrap();
    for (path, expected) in [
        ("/shop.Catalog/Search", 3),
        ("/shop.Catalog/Other", 2),
        ("/shop.Catalog/", 2),
        ("/shop.Cart/Search", 1),
        ("/shop.Catalog", 1),
        ("/", 1),
        ("", 1),
        ("*", 1),
        ("/shop.Catalog/Search/More", 1),
    ] {
        assert_eq!(seconds(&config, path), Some(expected), "{path}");
    }
}

#[test]
fn without_a_default_an_unnamed_method_has_no_config() {
    let config = ServiceConfig::builder().service("shop.Catalog", within(2));
    let config = config.build().unwrap();
    assert_eq!(seconds(&config, "/shop.Cart/Add"), None);
    let empty = ServiceConfig::builder().build().unwrap();
    assert!(empty.method(PATH).is_none());
}

#[test]
fn a_name_is_given_once() {
    let twice = [
        ServiceConfig::builder().all(within(1)).all(within(2)),
        ServiceConfig::builder()
            .service("a.B", within(1))
            .service("a.B", within(2)),
        ServiceConfig::builder()
            .method("a.B", "C", within(1))
            .method("a.B", "C", within(2)),
    ];
    for builder in twice {
        assert_eq!(builder.build().unwrap_err().setting(), "name");
    }
    let nameless = ServiceConfig::builder().method("", "C", within(1)).build();
    assert_eq!(nameless.unwrap_err().value(), "/C");
    // No path would ever match.
    let slash = |service, method| ServiceConfig::builder().method(service, method, within(1));
    for (service, method) in [("/a.B", "C"), ("a.B/", "C"), ("a.B/", ""), ("a.B", "/C")] {
        let refused = slash(service, method).build().unwrap_err();
        assert_eq!(refused.setting(), "name", "{service} {method}");
    }
}

#[test]
fn a_table_has_a_bound() {
    let mut builder = ServiceConfig::builder();
    for n in 0..=MAX_NAMES {
        builder = builder.method("a.B", &format!("M{n}"), MethodConfig::new());
    }
    assert_eq!(builder.build().unwrap_err().setting(), "name");
}

/// A6-03.
#[test]
fn a_plan_makes_two_to_five_attempts() {
    let attempts = |n| RetryPlan::new(n, backoff(), Codes::UNAVAILABLE).map(|plan| plan.attempts());
    assert_eq!(
        [2, 4, 5, 6, 10].map(|n| attempts(n).unwrap()),
        [2, 4, 5, 5, 5]
    );
    assert_eq!(attempts(1).unwrap_err().setting(), "maxAttempts");
    assert_eq!(attempts(0).unwrap_err().value(), "0");
    let hedges = |n| HedgePlan::new(n, MS, Codes::NONE).map(|plan| plan.attempts());
    assert_eq!((hedges(3).unwrap(), hedges(7).unwrap()), (3, 5));
    assert!(hedges(1).is_err());
}

#[test]
fn a_plan_lists_failures() {
    let plan = |codes| RetryPlan::new(2, backoff(), codes);
    let none = plan(Codes::NONE).unwrap_err();
    assert_eq!(none.setting(), "retryableStatusCodes");
    assert!(plan(Codes::UNAVAILABLE.with(Code::Ok)).is_err());
    let hedge = HedgePlan::new(2, MS, Codes::NONE.with(Code::Ok));
    assert_eq!(hedge.unwrap_err().setting(), "nonFatalStatusCodes");
}

#[test]
fn what_is_said_last_of_a_methods_resends_holds() {
    let plan = RetryPlan::new(2, backoff(), Codes::UNAVAILABLE).unwrap();
    let method = MethodConfig::new().retried(plan).sent_once();
    assert!(matches!(method.resends(), Some(Resends::Never)));
    let config = ServiceConfig::builder().all(method).build().unwrap();
    assert_eq!(
        (config.max_attempts(), config.has_hedges()),
        (Some(1), false)
    );
    let config = hedged(3, MS, &[]).build().unwrap();
    assert_eq!(
        (config.max_attempts(), config.has_hedges()),
        (Some(3), true)
    );
}

proptest! {
    /// A lookup is that of a list, whatever the path.
    #[test]
    fn a_lookup_finds_what_a_list_would(
        names in prop::collection::btree_set(("[ab]{0,2}", "[cd]{0,2}"), 0..8),
        path in "/?[ab/]{0,4}/?[cd]{0,2}",
    ) {
        let names: Vec<_> = names.into_iter()
            .filter(|(service, method)| !service.is_empty() || method.is_empty())
            .collect();
        let mut builder = ServiceConfig::builder();
        for (at, (service, method)) in (1_u64..).zip(&names) {
            builder = if service.is_empty() {
                builder.all(within(at))
            } else {
                builder.method(service, method, within(at))
            };
        }
        let config = builder.build().unwrap();
        let name = path.strip_prefix('/').unwrap_or(&path);
        let (service, method) = name.rsplit_once('/').unwrap_or(("", ""));
        let at = |wanted: (&str, &str)| {
            let there = |(service, method): &(String, String)| (&**service, &**method) == wanted;
            names.iter().position(there).map(|at| at as u64 + 1)
        };
        let expected = at((service, method)).filter(|_| !service.is_empty());
        let expected = expected.or_else(|| at((service, "")).filter(|_| !service.is_empty()));
        prop_assert_eq!(seconds(&config, &path), expected.or_else(|| at(("", ""))));
    }
}
