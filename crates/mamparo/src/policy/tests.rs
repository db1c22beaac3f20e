//! Documents in, policies or problems out.

use std::time::Duration;

use super::check::{Plan, Segment};
use super::*;

fn load(document: &str) -> Result<Policies, InvalidPolicies> {
    let loader = Policies::loader().text("policies.toml", document, Format::Toml);
    loader.load()
}

fn refused(document: &str) -> Vec<Problem> {
    load(document).unwrap_err().problems().to_vec()
}

fn catalog(settings: &str) -> String {
    format!("[dependency.catalog]\n{settings}\n")
}

const EXAMPLE: &str = r#"
[profile.internal]
deadline = "2s"
retry = { max_attempts = 3, backoff = { base = "100ms", cap = "2s", jitter = "full" } }

[dependency.catalog]
profile = "internal"
url = "http://catalog:8080"
breaker = { observes = "attempts", failure_rate = 0.5 }
bulkhead = { max_concurrent = 20 }

[dependency.psp]
deadline = "15s"
idempotency_key = "require"
retry = { max_attempts = 3, attempt_timeout = "4s" }
"#;

#[test]
fn the_example_is_defensible_and_says_what_it_does() {
    let policies = load(EXAMPLE).unwrap();
    assert_eq!(policies.warnings(), []);
    let catalog = policies.dependency("catalog").unwrap();
    assert_eq!(catalog.url(), Some("http://catalog:8080"));
    let text = catalog.describe();
    for line in [
        "  deadline: 2s, or what the caller has left",
        "  bulkhead: 20 at once, 64 waiting for up to 100ms",
        "  deadline = \"2s\"  (policies.toml:3 (profile internal))",
        "  bulkhead.max_concurrent = 20  (policies.toml:10)",
        "  retry.attempt_timeout = 2s  (default)",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    let psp = policies.dependency("psp").unwrap().http().unwrap();
    assert!(psp.to_string().contains("idempotency key: idempotency-key"));
    assert_eq!(psp.worst_case().time, Some(Duration::from_millis(12_400)));
}

/// The example that the arithmetic of a deadline is explained by, to the word.
#[test]
fn attempts_that_do_not_fit_are_refused_with_the_numbers() {
    let greedy = r#"deadline = "2s"
retry = { max_attempts = 4, attempt_timeout = "1s" }"#;
    let problems = refused(&catalog(greedy));
    assert_eq!(problems.len(), 1);
    assert_eq!(
        problems[0].to_string(),
        "policies.toml:3: error[attempts-exceed-deadline]: dependency.catalog.retry.max_attempts: \
         4 × 1000 ms + 700 ms = 4700 ms does not fit 2000 ms: 1 attempt fits, no retry\n  \
         remedy: make fewer attempts, shorten retry.attempt_timeout (policies.toml:3), or lengthen the deadline \
         (policies.toml:2)"
    );
}

#[test]
fn a_deadline_is_split_as_attempts_and_waits_take_it() {
    let mut problems = Vec::new();
    let settings = r#"deadline = "1500ms"
retry = { max_attempts = 2, attempt_timeout = "500ms" }"#;
    let document = source::text(&"f".into(), &catalog(settings), Format::Toml).unwrap();
    let views = resolve::resolve(&[document], [], &mut problems);
    let millis = Duration::from_millis;
    assert_eq!(
        Plan::of(&views[0]).segments().unwrap(),
        [
            Segment::Attempt(millis(500)),
            Segment::Wait(millis(100)),
            Segment::Attempt(millis(500)),
            Segment::Left(millis(400)),
        ]
    );
}

/// What nobody wrote gives way to what somebody wrote.
#[test]
fn values_that_come_from_defaults_are_never_refused() {
    for settings in [
        r#"deadline = "100ms""#,
        "deadline = \"300ms\"\nretry = { max_attempts = 5 }",
        "deadline = \"5s\"\nretry = { attempt_timeout = \"4s\" }",
    ] {
        let policies = load(&catalog(settings)).unwrap();
        let stack = policies.dependency("catalog").unwrap().http().unwrap();
        let worst = stack.worst_case().time.unwrap();
        assert!(worst <= Duration::from_secs(5), "{settings}: {worst:?}");
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once_each_with_its_line() {
    let document = r#"
[profile.a]
profile = "b"
[profile.b]
profile = "a"

[dependency.one]
profile = "a"

[dependency.two]
retries = { max_attempts = 3 }
deadline = 5
breaker = { failure_rate = 50 }

[dependency.three]
profile = "nobody"
deadline = "1s"
retry = { attempt_timeout = "1s" }

[dependency.four]
deadline = "1s"
retry = { attempt_timeout = "2s", backoff = { cap = "3s", base = "5s" } }
hedge = { max_attempts = 2 }
budget = { ratio = 1.5 }

[settings]
"#;
    let problems = refused(document);
    let told: Vec<_> = problems
        .iter()
        .map(|it| (it.code, it.origin.to_string()))
        .collect();
    let expected = [
        ("unknown-key", "policies.toml:26"),
        ("profile-cycle", "policies.toml:5"),
        ("unknown-key", "policies.toml:11"),
        ("bad-value", "policies.toml:12"),
        ("bad-value", "policies.toml:13"),
        ("unknown-profile", "policies.toml:16"),
        ("backoff-exceeds-deadline", "policies.toml:22"),
        ("two-owners", "policies.toml:23"),
        ("budget-too-large", "policies.toml:24"),
    ];
    let expected = expected.map(|(code, at)| (code, at.to_owned()));
    for it in &expected {
        assert!(told.contains(it), "{it:?} is not in {problems:#?}");
    }
    let suggested = &problems.iter().find(|it| it.path.ends_with("retries"));
    assert_eq!(suggested.unwrap().remedy, r#"did you mean "retry"?"#);
}

/// Row J6: one field of an instance leaves the others as they were inherited.
#[test]
fn profiles_are_merged_field_by_field_and_each_value_knows_its_origin() {
    let document = r#"
[profile.base]
retry = { max_attempts = 2, backoff = { base = "50ms", cap = "1s" } }
[profile.middle]
profile = "base"
retry = { backoff = { cap = "800ms" } }
[dependency.catalog]
profile = "middle"
retry = { max_attempts = 4 }
"#;
    let loader = Policies::loader().text("policies.toml", document, Format::Toml);
    let variable = (
        "MAMPARO__CATALOG__RETRY__MAX_BODY".to_owned(),
        "1024".to_owned(),
    );
    let policies = loader.environment([variable]).load().unwrap();
    let all = policies.dependency("catalog").unwrap().effective();
    let of = |path: &str| {
        let setting = all.iter().find(|it| it.path == path).unwrap();
        format!("{} {}", setting.value, setting.origin)
    };
    assert_eq!(of("retry.max_attempts"), "4 policies.toml:9");
    assert_eq!(
        of("retry.backoff.base"),
        r#""50ms" policies.toml:3 (profile base)"#
    );
    assert_eq!(
        of("retry.backoff.cap"),
        r#""800ms" policies.toml:6 (profile middle)"#
    );
    assert_eq!(
        of("retry.max_body"),
        "1024 environment variable MAMPARO__CATALOG__RETRY__MAX_BODY"
    );
    assert_eq!(of("deadline"), "10s default");
}

#[test]
fn yaml_and_json_say_the_same_as_toml_and_know_their_lines() {
    let yaml = "dependency:\n  catalog:\n    deadline: 2s\n    retry:\n      max_attempts: 4\n      attempt_timeout: 1s\n";
    let json = [
        r#"{"dependency": {"#,
        r#""catalog": {"#,
        r#""deadline": "2s","#,
        r#""retry": {"#,
        r#""max_attempts": 4,"#,
        r#""attempt_timeout": "1s"}}}}"#,
    ];
    let json = json.join("\n");
    for (document, format) in [(yaml, Format::Yaml), (&json, Format::Json)] {
        let refused = Policies::loader().text("f", document, format).load();
        let refused = refused.unwrap_err();
        let [problem] = refused.problems() else {
            panic!("{refused}");
        };
        assert_eq!(problem.code, "attempts-exceed-deadline");
        assert_eq!(problem.origin.to_string(), "f:5");
    }
}

/// Whoever asks twice gets the same state.
#[test]
fn a_dependency_has_one_state_however_often_it_is_asked_for() {
    let policies = load(&catalog("")).unwrap();
    let stack = || policies.dependency("catalog").unwrap().http().unwrap();
    stack().breaker_handle().unwrap().force_open();
    let other = stack().breaker_handle().unwrap();
    assert_eq!(other.state(), crate::breaker::BreakerState::ForcedOpen);
}

#[test]
fn a_dependency_that_is_not_there_is_told_with_those_that_are() {
    let policies = load(EXAMPLE).unwrap();
    let unknown = policies.dependency("catalogue").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        r#"there is no policy for the dependency "catalogue": the files name catalog, psp"#
    );
    let other = policies.dependency("psp").unwrap().grpc().unwrap_err();
    assert!(
        other
            .to_string()
            .starts_with("psp: its policy says that it speaks http")
    );
}

#[test]
fn a_document_that_is_none_is_refused_in_one_line() {
    let documents = [
        ("[dependency.a]\ndeadline = 2s", Format::Toml, "not-toml", 2),
        (
            "[dependency.a]\n[dependency.a]",
            Format::Toml,
            "not-toml",
            2,
        ),
        ("dependency:\n  a: b: c", Format::Yaml, "not-yaml", 2),
        ("dependency:\n  a: {}\n  a: {}", Format::Yaml, "not-yaml", 3),
        ("- 1", Format::Yaml, "not-yaml", 1),
        ("a = \"\0\"", Format::Toml, "not-a-text", 1),
    ];
    for (document, format, code, line) in documents {
        let refused = Policies::loader().text("f", document, format).load();
        let refused = refused.expect_err(document);
        let problem = &refused.problems()[0];
        assert_eq!(problem.code, code, "{document:?}: {problem}");
        assert_eq!(problem.origin.to_string(), format!("f:{line}"), "{problem}");
        assert!(!problem.message.contains('\n'), "{problem}");
    }
}

#[test]
fn nesting_without_an_end_is_refused_and_takes_no_stack() {
    let of = |open: &str, inside: &str, close: &str| {
        let depth = 200_000 / open.len();
        format!("{}{inside}{}", open.repeat(depth), close.repeat(depth))
    };
    let documents = [
        (format!("a = {}", of("[", "1", "]")), Format::Toml),
        (format!("a = {}", of("{ a = ", "1", " }")), Format::Toml),
        (format!("[{}]", of("a.", "a", "")), Format::Toml),
        (format!("{} = 1", of("a.", "a", "")), Format::Toml),
        (
            format!("[dependency.a]\nretry.{} = 1", of("a.", "a", "")),
            Format::Toml,
        ),
        (
            format!("a = {{ b = \"\"\"\n\"\"\", {} = 1 }}", of("a.", "a", "")),
            Format::Toml,
        ),
        (of("{\"a\":", "1", "}"), Format::Json),
        (of("[", "1", "]"), Format::Json),
        (of("{a: ", "1", "}"), Format::Yaml),
        (of("- ", "1", ""), Format::Yaml),
        (of("? ", "1", ""), Format::Yaml),
        (of("\t- ", "1", ""), Format::Yaml),
    ];
    // Dots in texts and comments nest nothing.
    let dots = ".".repeat(1_000);
    let flat = catalog(&format!("url = \"http://a{dots}\" # {dots}\n# {dots}"));
    load(&flat).unwrap();

    for (document, format) in documents {
        let begins = &document[..20];
        let refused = Policies::loader().text("deep", &*document, format).load();
        assert!(refused.is_err(), "{begins}…");
    }
}

#[test]
fn what_is_no_file_of_policies_is_refused_and_never_waited_for() {
    let folder = std::env::temp_dir().join(format!("mamparo-policies-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("folder.toml")).unwrap();
    let pipe = folder.join("pipe.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    std::fs::write(folder.join("large.toml"), " ".repeat((1 << 20) + 1)).unwrap();
    std::fs::write(folder.join("text.toml"), b"a = \"\xff\"").unwrap();
    std::fs::write(folder.join("nul.toml"), b"[dependency.a]\nurl = \"\0\"").unwrap();
    let ten_megabytes = std::fs::File::create(folder.join("ten.toml")).unwrap();
    ten_megabytes.set_len(10_000_000).unwrap();
    let cases = [
        ("folder.toml", "it is a folder"),
        ("pipe.toml", "it can't be read: it is no regular file"),
        (
            "large.toml",
            "it is larger than 1048576 bytes, the most that is read",
        ),
        (
            "ten.toml",
            "it is larger than 1048576 bytes, the most that is read",
        ),
        ("nul.toml", "line 2 has a NUL byte: this is no text"),
        ("text.toml", "it is no UTF-8 text"),
        ("missing.toml", "there is no such file"),
        ("policies.ini", "its ending says no format that is known"),
    ];
    for (name, message) in cases {
        let refused = Policies::load([folder.join(name)]).unwrap_err();
        assert_eq!(refused.problems()[0].message, message, "{name}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn from_environment(name: &str, value: &str) -> Result<Policies, InvalidPolicies> {
    let loader = Policies::loader().text("policies.toml", "[dependency.catalog]", Format::Toml);
    let variable = (name.to_owned(), value.to_owned());
    loader.environment([variable]).load()
}

/// `MAMPARO__CATALOG=1` was meant to do something.
#[test]
fn a_variable_that_names_a_whole_table_is_refused_and_says_how_to_name_a_setting() {
    for name in [
        "MAMPARO__CATALOG",
        "MAMPARO__CATALOG__",
        "MAMPARO__CATALOG____MAX",
    ] {
        let refused = from_environment(name, "1").unwrap_err();
        assert_eq!(refused.problems()[0].code, "incomplete-variable", "{name}");
    }
    let refused = from_environment("MAMPARO__CATALOG", "1").unwrap_err();
    assert_eq!(
        refused.problems()[0].to_string(),
        "environment variable MAMPARO__CATALOG: error[incomplete-variable]: it names no setting, and one value can't stand for \
         a whole table\n  remedy: name the setting, as MAMPARO__CATALOG__DEADLINE does, or unset it"
    );
    let refused = from_environment("MAMPARO__SERVER", "1").unwrap_err();
    assert!(
        refused.problems()[0]
            .remedy
            .contains("MAMPARO__SERVER__DEADLINE")
    );
    let refused = from_environment("MAMPARO__CATALOG__BREAKER", "1").unwrap_err();
    assert_eq!(refused.problems()[0].path, "dependency.catalog.breaker");
}

#[test]
fn files_that_say_nothing_are_warned_of() {
    let warned = |documents: &[&str]| {
        let loader = documents.iter().fold(Policies::loader(), |loader, it| {
            loader.text("policies.toml", *it, Format::Toml)
        });
        let warnings = loader.load().unwrap().warnings().to_vec();
        let codes = warnings.iter().filter(|it| it.code == "nothing-configured");
        codes.map(ToString::to_string).collect::<Vec<_>>()
    };
    let expected = "policies.toml:1: warning[nothing-configured]: nothing is configured: there is neither a dependency nor a server\n  \
                    remedy: write a table [dependency.NAME], or load the file that has one";
    for empty in [
        "",
        "# to be written",
        "[profile.internal]\ndeadline = \"2s\"",
    ] {
        assert_eq!(warned(&[empty]), [expected], "{empty}");
    }
    assert_eq!(warned(&["", "[dependency.catalog]"]), [""; 0]);
    assert_eq!(warned(&["[server]"]), [""; 0]);
    assert_eq!(warned(&[]), [""; 0], "there is no file to mend");
}
