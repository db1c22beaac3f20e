//! Service configs in JSON: what is read, what is refused, and where.

use std::time::Duration;

use mamparo_core::grpc::{Code, Codes};
use proptest::prelude::*;

use crate::grpc::{Resends, ServiceConfig};

const WHOLE: &str = r#"{
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [
        {
            "name": [{"service": "shop.Catalog"}, {"service": "shop.Cart", "method": "Add"}],
            "waitForReady": true,
            "timeout": "1.000000001s",
            "retryPolicy": {
                "maxAttempts": 7,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2.0,
                "retryableStatusCodes": ["UNAVAILABLE", "aborted", 8]
            }
        },
        {
            "name": [{}],
            "hedgingPolicy": {
                "max_attempts": "3",
                "hedging_delay": "0.5s",
                "nonFatalStatusCodes": ["UNAVAILABLE"]
            }
        },
        {"name": [{"service": "shop.Quiet", "method": null}], "retryPolicy": null}
    ],
    "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.5466}
}"#;

fn retry(json: &str) -> String {
    format!(r#"{{"methodConfig": [{{"name": [{{"service": "a.B"}}], "retryPolicy": {json}}}]}}"#)
}

/// A retry policy with one field in place of the right one.
fn with(field: &str, value: &str) -> String {
    let fields = [
        ("maxAttempts", "4"),
        ("initialBackoff", "\"0.1s\""),
        ("maxBackoff", "\"1s\""),
        ("backoffMultiplier", "2"),
        ("retryableStatusCodes", "[\"UNAVAILABLE\"]"),
    ];
    let fields = fields.map(|(name, right)| {
        let value = if name == field { value } else { right };
        format!("\"{name}\": {value}")
    });
    retry(&format!("{{{}}}", fields.join(", ")))
}

#[test]
fn a_config_as_grpcs_other_implementations_read_it_is_read() {
    let config = ServiceConfig::from_json(WHOLE).unwrap();
    let method = config.method("/shop.Catalog/Any").unwrap();
    assert_eq!(method.timeout(), Some(Duration::new(1, 1)));
    let Some(Resends::Retry(plan)) = method.resends() else {
        panic!("{method:?}");
    };
    let codes = [Code::Unavailable, Code::Aborted, Code::ResourceExhausted];
    assert_eq!(
        (plan.attempts(), plan.codes()),
        (5, codes.into_iter().collect())
    );
    assert_eq!(plan.backoff().ceiling(2), Duration::from_millis(240));
    assert!(config.method("/shop.Cart/Add").is_some());

    let other = config.method("/shop.Cart/Remove").unwrap();
    let Some(Resends::Hedge(plan)) = other.resends() else {
        panic!("{other:?}");
    };
    let expected = (3, Duration::from_millis(500), Codes::UNAVAILABLE);
    assert_eq!((plan.attempts(), plan.delay(), plan.codes()), expected);
    assert!(
        config
            .method("/shop.Quiet/Any")
            .unwrap()
            .resends()
            .is_none()
    );
    assert_eq!(config.throttle().unwrap().tokens(), 10.0);
}

#[test]
fn what_is_not_obeyed_is_told() {
    let config = ServiceConfig::from_json(WHOLE).unwrap();
    assert_eq!(
        config.ignored(),
        [
            "methodConfig[0].retryPolicy.maxAttempts: more than 5 are 5",
            "methodConfig[0].waitForReady: is not known here",
            "loadBalancingConfig: is not known here",
        ]
    );
    let nameless = r#"{"methodConfig": [{"timeout": "1s"}]}"#;
    let config = ServiceConfig::from_json(nameless).unwrap();
    assert_eq!(
        config.ignored(),
        ["methodConfig[0]: names no method, and holds for none"]
    );
    assert!(config.method("/a/b").is_none());
}

/// A6-03, A6-04, A6-05: each refusal names its place and what stands there.
#[test]
fn nonsense_is_refused_where_it_stands() {
    let policy = "methodConfig[0].retryPolicy";
    for (field, value) in [
        ("maxAttempts", "1"),
        ("maxAttempts", "-3"),
        ("maxAttempts", "2.5"),
        ("maxAttempts", "\"many\""),
        ("maxAttempts", "null"),
        ("initialBackoff", "\"0s\""),
        ("initialBackoff", "0.1"),
        ("initialBackoff", "\"-1s\""),
        ("initialBackoff", "\"1\""),
        ("initialBackoff", "\"+1s\""),
        ("initialBackoff", "\"1.0000000001s\""),
        ("maxBackoff", "\"100ms\""),
        ("backoffMultiplier", "0"),
        ("backoffMultiplier", "\"NaN\""),
        ("backoffMultiplier", "[]"),
        ("retryableStatusCodes", "[]"),
        ("retryableStatusCodes", "\"UNAVAILABLE\""),
    ] {
        let error = ServiceConfig::from_json(&with(field, value)).unwrap_err();
        assert_eq!(error.path(), format!("{policy}.{field}"), "{value}");
        let shown = value.trim_matches('"');
        let nothing = error.value() == "(nothing)" && value == "null";
        assert!(
            nothing || error.value().trim_matches('"') == shown,
            "{error}"
        );
    }
    for code in ["\"NO_SUCH\"", "17", "-1", "1.5", "{}"] {
        let json = with("retryableStatusCodes", &format!("[\"ABORTED\", {code}]"));
        let error = ServiceConfig::from_json(&json).unwrap_err();
        assert_eq!(error.path(), format!("{policy}.retryableStatusCodes[1]"));
    }
    let ok = ServiceConfig::from_json(&with("retryableStatusCodes", "[0]")).unwrap_err();
    assert_eq!(
        ok.to_string(),
        "methodConfig[0].retryPolicy.retryableStatusCodes = OK in the service config is refused: must not list OK: \
         what succeeded is not sent again"
    );
}

#[test]
fn a_document_that_contradicts_itself_is_refused() {
    let both = r#"{"methodConfig": [{"name": [{}],
        "retryPolicy": {"maxAttempts": 2}, "hedgingPolicy": {"maxAttempts": 2}}]}"#;
    let twice =
        r#"{"methodConfig": [{"name": [{"service": "a.B"}]}, {"name": [{"service": "a.B"}]}]}"#;
    let spelled = r#"{"methodConfig": [{"name": [{}],
        "hedgingPolicy": {"maxAttempts": 2, "max_attempts": 3}}]}"#;
    for (json, path) in [
        (both, "methodConfig[0].hedgingPolicy"),
        (twice, "methodConfig.name"),
        (spelled, "methodConfig[0].hedgingPolicy.maxAttempts"),
        (
            r#"{"methodConfig": [{"name": [{"method": "M"}]}]}"#,
            "methodConfig[0].name[0].method",
        ),
        (
            r#"{"methodConfig": [{"name": [{}], "timeout": "0s"}]}"#,
            "methodConfig[0].timeout",
        ),
        (
            r#"{"methodConfig": [{"name": [7]}]}"#,
            "methodConfig[0].name[0]",
        ),
        (r#"{"methodConfig": {}}"#, "methodConfig"),
        (
            r#"{"retryThrottling": {"maxTokens": 10}}"#,
            "retryThrottling.tokenRatio",
        ),
        (
            r#"{"retryThrottling": {"maxTokens": 0, "tokenRatio": 1}}"#,
            "retryThrottling.maxTokens",
        ),
        (
            r#"{"retryThrottling": {"maxTokens": 1001, "tokenRatio": 1}}"#,
            "retryThrottling.maxTokens",
        ),
        (
            r#"{"retryThrottling": {"maxTokens": 9, "tokenRatio": 0.0001}}"#,
            "retryThrottling.tokenRatio",
        ),
        ("[]", ""),
        ("{", ""),
        ("", ""),
    ] {
        let error = ServiceConfig::from_json(json).unwrap_err();
        assert_eq!(error.path(), path, "{error}");
        assert!(!error.reason().is_empty());
    }
}

#[test]
fn a_document_has_a_bound_and_what_is_shown_of_it_too() {
    let long = format!("{{{}}}", " ".repeat(1 << 20));
    let error = ServiceConfig::from_json(&long).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the service config is refused: is larger than the 1 MiB that are read"
    );
    let error =
        ServiceConfig::from_json(&with("initialBackoff", &format!("\"{}\"", "ü".repeat(999))));
    assert!(error.unwrap_err().to_string().len() < 400);
    let unknown: Vec<_> = (0..1_000).map(|n| format!("\"f{n}\": 0")).collect();
    let config = ServiceConfig::from_json(&format!("{{{}}}", unknown.join(","))).unwrap();
    assert_eq!(config.ignored().len(), 100);
}

#[test]
fn a_wait_of_more_than_a_day_is_a_day_and_told() {
    let config = ServiceConfig::from_json(&with("maxBackoff", "\"315576000000s\"")).unwrap();
    assert_eq!(
        config.ignored(),
        ["methodConfig[0].retryPolicy.maxBackoff: more than 24 hours are 24 hours"]
    );
}

proptest! {
    #[test]
    fn no_text_is_read_with_a_panic(text in "\\PC{0,200}") {
        let wild = ServiceConfig::from_json(&text);
        let inside = ServiceConfig::from_json(&with("maxBackoff", &format!("{text:?}")));
        for error in [wild, inside].into_iter().filter_map(Result::err) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
