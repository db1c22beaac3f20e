//! The server's own table: what it sets, what is refused, and how it is shown.

use std::time::Duration;

use super::{Format, InvalidPolicies, Policies};
use crate::idempotency::{IdempotencyPolicy, KeySyntax, OnExpiry, OnStoreFailure, Stored};

fn load(document: &str) -> Result<Policies, InvalidPolicies> {
    Policies::loader()
        .text("p.toml", document, Format::Toml)
        .load()
}

#[test]
fn a_server_is_read_from_its_table_and_the_environment() {
    let document = r#"
[server]
max_deadline = "30s"
default_deadline = "5s"
exhausted_header = "off"
rate_limit = { count = 600, period = "1m", key = "header", header = "x-api-key", fields = "both" }
load_shed = { max_in_flight = 500 }
bulkhead = { max_concurrent = 100 }
stop = { delay = "5s", grace = "20s" }
"#;
    let variable = ("MAMPARO__SERVER__STOP__GRACE".to_owned(), "10s".to_owned());
    let loader = Policies::loader().text("p.toml", document, Format::Toml);
    let policies = loader.environment([variable]).load().unwrap();
    assert_eq!(policies.warnings(), []);
    let server = policies.server();
    assert!(server.is_written());
    assert_eq!(server.stop().longest(), Duration::from_secs(5 + 10 + 5));
    let described = server.describe();
    for line in [
        r#"max_deadline = "30s"  (p.toml:3)"#,
        r#"stop.grace = "10s"  (environment variable MAMPARO__SERVER__STOP__GRACE)"#,
        "rate_limit.max_keys = 10000  (default)",
        "bulkhead.max_waiting = 64  (default)",
    ] {
        assert!(described.contains(line), "no {line} in {described}");
    }
    let debug = format!("{:?}", server.http());
    assert!(debug.contains("x-api-key"), "{debug}");
}

#[test]
fn without_a_table_a_server_is_as_by_hand() {
    let policies = load("").unwrap();
    assert!(!policies.server().is_written());
    assert_eq!(
        policies.server().stop(),
        crate::serve::StopPolicy::default()
    );
}

/// Every setting of the table reaches the policy that it builds.
#[test]
fn idempotency_keys_are_read_from_their_table() {
    let document = r#"
[server.idempotency]
key = "header"
header = "x-account"
key_header = "x-once"
syntax = "strict"
longest_key = 64
required = true
methods = ["PUT"]
stored = "successes"
retention = "3d"
retry_horizon = "2d"
lease = "10s"
on_expiry = "run_again"
indeterminate_status = 409
on_store_failure = "run_unprotected"
store_timeout = "1s"
retry_after = "3s"
request_limit = 1000
answer_limit = 2000
namespace = "shop"
documentation = "https://shop.example/keys"
"#;
    let policies = load(document).unwrap();
    let read = policies.server().idempotency().unwrap();
    let seconds = Duration::from_secs;
    let by_hand = IdempotencyPolicy::per_principal(|_| None)
        .header(http::HeaderName::from_static("x-once"))
        .syntax(KeySyntax::Strict)
        .longest_key(64)
        .required()
        .methods([http::Method::PUT])
        .stored(Stored::Successes)
        .retention(seconds(3 * 86_400))
        .retry_horizon(seconds(2 * 86_400))
        .lease(seconds(10))
        .on_expiry(OnExpiry::RunAgain)
        .indeterminate_status(http::StatusCode::CONFLICT)
        .on_store_failure(OnStoreFailure::RunUnprotected)
        .store_timeout(seconds(1))
        .retry_after(seconds(3))
        .request_limit(1_000)
        .answer_limit(2_000)
        .namespace("shop")
        .documentation("https://shop.example/keys");
    assert_eq!(
        format!("{read:?}"),
        format!("{:?}", by_hand.build().unwrap())
    );
    assert!(load("").unwrap().server().idempotency().is_none());
}

#[test]
fn what_is_wrong_with_a_server_is_told_with_its_place() {
    let cases = [
        ("max_deadlin = \"1s\"", "unknown-key", "server.max_deadlin"),
        ("max_deadline = 5", "bad-value", "server.max_deadline"),
        (
            "max_deadline = \"0s\"",
            "refused-value",
            "server.max_deadline",
        ),
        (
            "rate_limit = { period = \"1s\" }",
            "refused-value",
            "server.rate_limit",
        ),
        (
            "rate_limit = { count = 1, told_as = \"two words\" }",
            "refused-value",
            "server.rate_limit",
        ),
        (
            "rate_limit = { count = 1, key = \"header\" }",
            "refused-value",
            "server.rate_limit",
        ),
        (
            "rate_limit = { count = 1, trusted_proxies = [\"0.0.0.0/0\"] }",
            "refused-value",
            "server.rate_limit.trusted_proxies",
        ),
        ("load_shed = {}", "refused-value", "server.load_shed"),
        (
            "stop = { grace = \"0s\" }",
            "refused-value",
            "server.stop.grace",
        ),
        (
            "exhausted_header = \"a b\"",
            "refused-value",
            "server.exhausted_header",
        ),
        ("timeout_status = 200", "bad-value", "server.timeout_status"),
    ];
    are_refused(&cases);
    let list = load("server = 3").unwrap_err();
    assert_eq!(list.problems()[0].code, "bad-value");
}

#[test]
fn what_is_wrong_with_idempotency_keys_is_told_with_its_place() {
    are_refused(&[
        ("idempotency = {}", "refused-value", "server.idempotency"),
        (
            "idempotency = { key = \"header\" }",
            "refused-value",
            "server.idempotency",
        ),
        (
            "idempotency = { key = \"all\", retention = \"1h\", retry_horizon = \"2h\" }",
            "refused-value",
            "server.idempotency.retention",
        ),
        (
            "idempotency = { key = \"all\", indeterminate_status = 410 }",
            "refused-value",
            "server.idempotency.indeterminate_status",
        ),
        (
            "idempotency = { key = \"all\", methods = [\"P OST\"] }",
            "refused-value",
            "server.idempotency.methods",
        ),
    ]);
}

#[test]
fn a_variable_alone_writes_the_table() {
    let set = |name: &str, value: &str| {
        let variables = [(name.to_owned(), value.to_owned())];
        let loader = Policies::loader().text("p.toml", "[dependency.a]\n", Format::Toml);
        loader.environment(variables).load()
    };
    for (name, value) in [
        ("MAMPARO__SERVER__MAX_DEADLINE", "30s"),
        ("MAMPARO__SERVER__STOP__DELAY", "1s"),
    ] {
        let policies = set(name, value).unwrap();
        assert!(policies.server().is_written(), "{name}");
    }
    let refused = set("MAMPARO__SERVER__LOAD_SHED__MAX_IN_FLIGHT", "0").unwrap_err();
    let place = refused.problems()[0].origin.to_string();
    assert!(place.contains("MAMPARO__SERVER"), "{place}");
    assert!(
        !set("MAMPARO__A__DEADLINE", "1s")
            .unwrap()
            .server()
            .is_written()
    );
}

/// Each line, with its problem's code and path.
fn are_refused(cases: &[(&str, &str, &str)]) {
    for &(line, code, path) in cases {
        let refused = load(&format!("[server]\n{line}\n")).unwrap_err();
        let found = &refused.problems()[0];
        assert_eq!((found.code, &*found.path), (code, path), "{line}");
        assert!(
            found.origin.to_string().starts_with("p.toml:"),
            "{}",
            found.origin
        );
    }
}
