//! The operational checklist: answered from the policies where it can be, and open where only a person knows.

use insta::assert_snapshot;
use serde_json::Value;

use crate::check::{policies, stdout};

async fn asked(files: &[&str]) -> Value {
    let args = [&["check", "--checklist", "--format", "json"], files].concat();
    policies(&args).await.json()
}

/// The question that begins so.
fn question<'a>(checklist: &'a Value, asks: &str) -> &'a Value {
    let sections = checklist["sections"].as_array().expect("sections").iter();
    let mut questions = sections.flat_map(|it| it["questions"].as_array().expect("questions"));
    questions
        .find(|it| it["asks"].as_str().expect("a text").starts_with(asks))
        .expect(asks)
}

#[tokio::test]
async fn each_question_is_answered_from_the_policies_or_left_open() {
    let ran = policies(&["check", "--checklist", "at/defensible.toml"]).await;
    assert_eq!(ran.code, 0);
    assert_snapshot!(stdout(&ran));
}

#[tokio::test]
async fn a_program_gets_each_answer_with_its_dependencies() {
    let checklist = asked(&["at/defensible.toml"]).await;
    let all = ["answered", "missing", "open"].map(|it| checklist[it].as_u64().expect("a count"));
    assert_eq!(all.iter().sum::<u64>(), 37);
    let deadline = question(&checklist, "Is there a deadline");
    assert_eq!(deadline["status"], "answered");
    let first = &deadline["answers"][0];
    assert_eq!(first["says"], "2s, or what the caller has left");
    let about = serde_json::json!([{ "service": "defensible", "dependency": "catalog" }]);
    assert_eq!(first["about"], about);
    let tried = question(&checklist, "Was an answer lost");
    assert_eq!(
        (&tried["status"], &tried["answers"][0]["about"]),
        (&"open".into(), &Value::Array(vec![]))
    );
}

/// Refused files are asked too: the gaps are what they are refused for.
#[tokio::test]
async fn the_gaps_of_the_dangerous_configuration_are_named() {
    let files =
        ["client", "gateway", "service"].map(|name| format!("at/articles/dangerous/{name}.toml"));
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let ran = policies(&[&["check", "--checklist"], &files[..]].concat()).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("error[unsafe-resend]"),
        "{}",
        ran.stderr
    );
    let checklist = asked(&files).await;
    for asks in [
        "May a request be repeated",
        "Does the dependency tell a repetition",
        "Is there a deadline",
        "How many attempts really fit",
        "Can the waits use up",
        "Who owns the retry",
        "Does it count failures and slow calls",
    ] {
        assert_eq!(question(&checklist, asks)["status"], "missing", "{asks}");
    }
}

/// All that a policy can say is answered by one that says it.
#[tokio::test]
async fn the_defensible_configuration_has_no_gap() {
    let files =
        ["client", "gateway", "service"].map(|name| format!("at/articles/defensible/{name}.toml"));
    let checklist = asked(&[&files[2]]).await;
    assert_eq!(checklist["missing"], 0, "{checklist:#}");
    for asks in [
        "Does the dependency tell",
        "Who owns the retry",
        "Does a client library",
        "Does it count",
    ] {
        assert_eq!(question(&checklist, asks)["status"], "answered", "{asks}");
    }
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let checklist = asked(&files).await;
    let owner = question(&checklist, "Who owns the retry");
    assert_eq!(owner["answers"][0]["says"], "service, alone");
}

/// What it points to is there.
#[tokio::test]
async fn each_metric_that_it_names_is_documented() {
    let metrics = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/metrics.md"
    ));
    let metrics = metrics.expect("it is shipped");
    let text = stdout(&policies(&["check", "--checklist", "at/defensible.toml"]).await);
    let words = text.split(|c: char| c.is_whitespace() || c == ',' || c == ':');
    let named: Vec<_> = words.filter(|word| word.starts_with("mamparo.")).collect();
    assert!(named.len() >= 8, "{named:?}");
    for name in named {
        assert!(metrics.contains(&format!("`{name}`")), "{name}");
    }
}

#[tokio::test]
async fn a_checklist_has_no_form_for_scanners() {
    let ran = policies(&["check", "--checklist", "--format", "sarif", "at/mesh.toml"]).await;
    assert_eq!((ran.code, ran.stdout.len()), (2, 0));
    assert!(
        ran.stderr.contains("--format text or --format json"),
        "{}",
        ran.stderr
    );
}
