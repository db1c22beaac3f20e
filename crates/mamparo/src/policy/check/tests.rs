//! Each rule, on the smallest document that breaks it and on the nearest that does not.

use crate::policy::{Format, Policies, Problem};

/// All that is told of a document, refused or not.
fn told(document: &str) -> Vec<Problem> {
    let loader = Policies::loader().text("policies.toml", document, Format::Toml);
    match loader.load() {
        Ok(policies) => policies.warnings().to_vec(),
        Err(refused) => refused.problems().to_vec(),
    }
}

fn of(settings: &str) -> Vec<Problem> {
    told(&format!("[dependency.psp]\n{settings}\n"))
}

fn codes(problems: &[Problem]) -> Vec<&'static str> {
    problems.iter().map(|problem| problem.code).collect()
}

/// The one problem of some settings: its line, its code, its message.
#[track_caller]
fn one(settings: &str) -> (String, &'static str, String) {
    let problems = of(settings);
    let [problem] = problems.as_slice() else {
        panic!("{problems:#?}");
    };
    (
        problem.origin.to_string(),
        problem.code,
        problem.message.clone(),
    )
}

#[test]
fn what_may_take_effect_twice_is_not_sent_again_without_a_key() {
    let (at, code, message) = one(r#"retry = { methods = ["GET", "POST", "PATCH"] }"#);
    assert_eq!(
        (at.as_str(), code),
        ("policies.toml:2", "unsafe-resend"),
        "{message}"
    );
    assert!(
        message.starts_with("POST and PATCH would be sent again without a key"),
        "{message}"
    );
    let (_, code, _) = one("hedge = { idempotent_only = false }");
    assert_eq!(code, "unsafe-resend");
    for settings in [
        r#"retry = { methods = ["GET", "PUT", "QUERY"] }"#,
        "retry = { methods = [\"POST\"] }\nidempotency_key = \"require\"",
        "hedge = { idempotent_only = false }\nidempotency_key = {}",
        r#"retry = { methods = ["POST"], max_attempts = 1 }"#,
    ] {
        assert_eq!(of(settings), [], "{settings}");
    }
}

#[test]
fn a_key_outlives_the_last_resend() {
    let kept = |retention: &str, rest: &str| {
        format!("{rest}\nidempotency_key = {{ retention = \"{retention}\" }}")
    };
    let (at, code, message) = one(&kept("15s", r#"deadline = "15s""#));
    assert_eq!(
        (at.as_str(), code),
        ("policies.toml:3", "retention-too-short")
    );
    assert!(
        message.contains("after 15000 ms") && message.contains("up to 15000 ms"),
        "{message}"
    );
    assert_eq!(of(&kept("15001ms", r#"deadline = "15s""#)), []);
    // The default deadline holds too.
    assert_eq!(codes(&of(&kept("9s", ""))), ["retention-too-short"]);
    assert_eq!(of(&kept("1s", r#"retry = "off""#)), []);
    // Without a deadline: 3 × 2 s + 300 ms, and twice the 30 s that a server may ask for.
    let none = r#"deadline = "none""#;
    let refused = of(&kept("66300ms", none));
    assert_eq!(codes(&refused), ["no-deadline", "retention-too-short"]);
    assert!(refused[1].message.contains("up to 66300 ms"), "{refused:?}");
    assert_eq!(codes(&of(&kept("66301ms", none))), ["no-deadline"]);
    let endless = "deadline = \"none\"\nretry = { attempt_timeout = \"none\" }";
    let refused = of(&kept("24h", endless));
    assert_eq!(codes(&refused), ["no-deadline", "retention-too-short"]);
}

#[test]
fn the_breakers_own_rejection_is_not_declared_retryable() {
    for name in ["breaker_open", "CallNotPermittedException", "circuit-open"] {
        let (_, code, message) = one(&format!(r#"retry = {{ also_retry = [404, "{name}"] }}"#));
        assert_eq!(code, "breaker-rejection-retried");
        assert!(message.contains(name), "{message}");
    }
    let (_, code, _) = one(r#"retry = { never_retry = ["breaker_open"] }"#);
    assert_eq!(code, "bad-value");
}

#[test]
fn a_breaker_that_sees_only_what_fails_for_good_is_doubted() {
    let (at, code, _) = one(r#"breaker = { observes = "operations" }"#);
    assert_eq!(
        (at.as_str(), code),
        ("policies.toml:2", "breaker-sees-too-little")
    );
    for settings in [
        r#"breaker = { observes = "operations", slow_call = "1s" }"#,
        "breaker = { observes = \"operations\" }\nretry = \"off\"",
        r#"breaker = { observes = "attempts" }"#,
    ] {
        assert_eq!(of(settings), [], "{settings}");
    }
}

#[test]
fn what_is_of_http_is_told_to_do_nothing_in_grpc() {
    let (_, code, _) = one("protocol = \"grpc\"\nretry = { also_retry = [404] }");
    assert_eq!(code, "no-effect");
    assert_eq!(of("retry = { also_retry = [404] }"), []);
}

/// Row J9: a handler around all clients and one around this: the worst case is the product.
#[test]
fn retries_in_two_layers_are_told_with_the_worst_case() {
    let document = |retry: &str, attempts: u32| {
        format!(
            "[[external_retrier]]\nname = \"global handler\"\nattempts = {attempts}\n[dependency.psp]\nretry = {retry}\n"
        )
    };
    let problems = told(&document("{ max_attempts = 4 }", 4));
    assert_eq!(codes(&problems), ["retries-in-two-layers"]);
    assert_eq!(
        problems[0].message,
        "this policy and global handler each send it again: at worst 4 × 4 = 16 calls for one operation"
    );
    assert_eq!(problems[0].origin.to_string(), "policies.toml:5");
    assert!(
        problems[0].remedy.contains("(policies.toml:1)"),
        "{problems:?}"
    );
    assert_eq!(told(&document("{ max_attempts = 4 }", 1)), []);
    assert_eq!(told(&document(r#""off""#, 4)), []);
    let both = "[[external_retrier]]\nname = \"sdk\"\nattempts = 2\n[[external_retrier]]\nname = \"mesh\"\nattempts = 3\n\
                calls = [\"psp\"]\n[dependency.psp]\nretry = \"off\"\n[dependency.other]\nretry = \"off\"\n";
    let problems = told(both);
    assert_eq!(codes(&problems), ["retries-in-two-layers"]);
    assert_eq!(
        problems[0].message,
        "sdk and mesh each send it again: at worst 2 × 3 = 6 calls for one operation"
    );
}

/// Three attempts of 5 s each, and nothing that ends them.
#[test]
fn no_deadline_is_told_with_what_the_attempts_take() {
    let (_, code, message) = one(r#"deadline = "none"
retry = { max_attempts = 4, attempt_timeout = "5s" }"#);
    assert_eq!(code, "no-deadline");
    assert!(
        message.contains("4 × 5000 ms + 700 ms = 20700 ms"),
        "{message}"
    );
}

/// Row J11: what makes no sense is an error of the load, never a panic of the first call.
#[test]
fn values_without_sense_are_refused_when_they_are_loaded() {
    for settings in [
        "bulkhead = { max_concurrent = 0 }",
        "rate_limit = { count = 0 }",
        "rate_limit = { count = 5, period = \"0s\" }",
        "breaker = { failure_rate = nan }",
        "breaker = { failure_rate = 1.1 }",
        "breaker = { failure_rate = 0.5, window = \"0s\" }",
        "breaker = { consecutive_failures = 0 }",
        "breaker = { probes = 0 }",
        "retry = { max_attempts = 0 }",
        "retry = { backoff = { base = \"0s\" } }",
        "retry = { backoff = { factor = inf } }",
        "hedge = { percentile = nan }",
        "budget = { ratio = nan }",
        "budget = { max_concurrent = 0 }",
        "deadline = \"0s\"",
        "reserve = \"1h\"",
        "load_shed = { max_in_flight = 0 }",
        "retry = { methods = [\"FETCH\"] }",
    ] {
        let loader = Policies::loader();
        let document = format!("[dependency.psp]\n{settings}\n");
        let refused = loader.text("policies.toml", document, Format::Toml).load();
        let refused = refused.expect_err(settings);
        let problem = &refused.problems()[0];
        assert_eq!(problem.origin.to_string(), "policies.toml:2", "{problem}");
    }
}

/// The engine would refuse to start with it.
#[test]
fn what_is_deferred_can_come_back() {
    for (settings, code) in [
        (r#"wait = { base = "2h", cap = "1h" }"#, "cap-below-base"),
        (r#"technical_wait = { base = "0s" }"#, "bad-value"),
        (r#"postponed_wait = { cap = "366d" }"#, "bad-value"),
        (r#"give_up_after = "0s""#, "bad-value"),
        ("refused = [200]", "bad-value"),
        ("declined = [204]", "bad-value"),
        ("refused = [409, 423]\ndeclined = [423]", "two-meanings"),
        (
            "field = \"s\"\nrefused_values = [\"A\"]\ndeclined_values = [\"A\"]",
            "two-meanings",
        ),
        (r#"refused_values = ["A"]"#, "missing-value"),
        (r#"declined_values = ["A"]"#, "missing-value"),
        (r#"field = "s""#, "no-effect"),
    ] {
        let told = told(&format!("[dependency.psp.defer]\n{settings}\n"));
        assert_eq!(codes(&told), [code], "{settings}");
    }
    let many: Vec<_> = (0..101).map(|number| format!("\"{number}\"")).collect();
    let many = many.join(", ");
    let (_, code, message) = one(&format!(
        "defer = {{ field = \"s\", refused_values = [{many}] }}"
    ));
    assert_eq!((code, message.as_str()), ("bad-value", "101 are listed"));
    let (_, code, _) = one("protocol = \"grpc\"\ndefer = {}");
    assert_eq!(code, "no-effect");
    for settings in [
        r#"defer = { wait = { base = "2h", cap = "2h" }, technical_wait = { cap = "1s" }, postponed_wait = { base = "2h" } }"#,
        r#"defer = { refused = [409], declined = [423], field = "s", refused_values = ["A"], declined_values = ["B"] }"#,
        "protocol = \"grpc\"\ndefer = \"off\"",
    ] {
        assert_eq!(of(settings), [], "{settings}");
    }
}
