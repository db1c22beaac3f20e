//! Policy files, checked: what is printed, and how it exits. A person mends the file from the message alone.

use insta::assert_snapshot;
use serde_json::Value;

use crate::run::{Ran, mamparo};

/// Runs `mamparo` on the files in `tests/policies`.
pub(crate) async fn policies(args: &[&str]) -> Ran {
    let in_folder = |arg: &&str| match arg.split_once('/') {
        Some(("at", file)) => format!("tests/policies/{file}"),
        _ => (*arg).to_owned(),
    };
    let args: Vec<_> = args.iter().map(in_folder).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    mamparo(&args).await
}

pub(crate) fn stdout(ran: &Ran) -> String {
    assert_eq!(ran.stderr, "");
    String::from_utf8(ran.stdout.clone()).expect("text")
}

#[tokio::test]
async fn what_is_defensible_passes_with_its_arithmetic() {
    let ran = policies(&["check", "at/defensible.toml", "--deny-warnings"]).await;
    assert_eq!(ran.code, 0);
    let text = stdout(&ran);
    assert!(text.contains("500 ms + 100 ms wait + 500 ms + 400 ms left = 1500 ms"));
    assert_snapshot!(text);
}

#[tokio::test]
async fn what_is_dangerous_is_refused_with_every_reason() {
    let ran = policies(&["check", "at/dangerous.toml"]).await;
    assert_eq!(ran.code, 1);
    let text = stdout(&ran);
    assert!(text.contains("4 × 1000 ms + 700 ms = 4700 ms does not fit 2000 ms"));
    assert_snapshot!(text);
}

#[tokio::test]
async fn what_is_broken_is_told_at_once_in_the_order_of_the_file() {
    let ran = policies(&["check", "at/broken.toml"]).await;
    assert_eq!(ran.code, 1);
    assert_snapshot!(stdout(&ran));
}

#[tokio::test]
async fn contradictions_and_slips_say_what_to_write_instead() {
    let ran = policies(&["check", "at/contradictions.toml"]).await;
    assert_eq!(ran.code, 1);
    assert_snapshot!(stdout(&ran));
}

#[tokio::test]
async fn what_sends_again_too_much_or_with_nobody_to_tell_says_so() {
    let mut text = String::new();
    for file in ["at/resends.toml", "at/slips.yaml"] {
        let ran = policies(&["check", file]).await;
        assert_eq!(ran.code, 1, "{file}");
        text += &stdout(&ran);
    }
    assert_snapshot!(text);
}

/// What the engine of the defer plane would refuse at its start.
#[tokio::test]
async fn what_is_deferred_and_could_not_come_back_is_refused_before_the_engine_starts() {
    let ran = policies(&["check", "at/deferred.toml"]).await;
    assert_eq!(ran.code, 1);
    assert_snapshot!(stdout(&ran));
}

/// What only a layer's own builder knows is told of every dependency as well.
#[tokio::test]
async fn what_the_layers_refuse_is_told_at_once() {
    let ran = policies(&["check", "at/refused.toml"]).await;
    assert_eq!(ran.code, 1);
    assert_snapshot!(stdout(&ran));
}

#[tokio::test]
async fn what_is_no_document_is_refused_in_the_same_words() {
    let ran = policies(&["check", "at/cut.toml", "at/cut.yaml", "at/cut.json"]).await;
    assert_eq!(ran.code, 2, "three services of one name: {ran:?}");
    let mut text = String::new();
    for file in ["at/cut.toml", "at/cut.yaml", "at/cut.json"] {
        let ran = policies(&["check", file]).await;
        assert_eq!(ran.code, 1, "{file}");
        text += &stdout(&ran);
    }
    assert_snapshot!(text);
}

/// Three layers of four attempts are 64 calls, of three attempts 27.
#[tokio::test]
async fn a_chain_multiplies_its_attempts() {
    let chain = [
        "check",
        "at/chain/gateway.toml",
        "at/chain/orders.toml",
        "at/chain/inventory.toml",
    ];
    let ran = policies(&chain).await;
    assert_eq!(ran.code, 0);
    let text = stdout(&ran);
    assert!(text.contains("4 × 4 × 4 = 64 calls"), "{text}");
    assert_snapshot!(text);
    let ran = policies(&[&chain[..], &["--deny-warnings"]].concat()).await;
    assert_eq!(ran.code, 1);

    let ran = policies(&[&chain[..], &["--mermaid"]].concat()).await;
    assert_snapshot!("chain_mermaid", stdout(&ran));
    let three = [
        "check",
        "at/three/gateway.toml",
        "at/three/orders.toml",
        "at/three/inventory.toml",
    ];
    let text = stdout(&policies(&three).await);
    assert!(text.contains("3 × 3 × 3 = 27 calls"), "{text}");
}

/// A mesh in between counts, and where one owns the retry and all is declared nothing is left to ask.
#[tokio::test]
async fn one_owner_and_deadlines_that_shrink_pass_without_a_word() {
    let ran = policies(&[
        "check",
        "at/owned/",
        "at/owned_orders.toml",
        "--deny-warnings",
    ])
    .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_snapshot!(stdout(&ran));
    let ran = policies(&["check", "at/mesh.toml"]).await;
    let text = stdout(&ran);
    assert!(
        text.contains("mesh → catalog: at worst 3 × 2 = 6 calls; sent again by mesh, linkerd"),
        "{text}"
    );
}

#[tokio::test]
async fn services_that_call_each_other_are_followed_once_around() {
    let ran = policies(&["check", "at/circle/one.toml", "at/circle/two.toml"]).await;
    let text = stdout(&ran);
    assert!(
        text.contains("services call each other in a circle: one → two → one"),
        "{text}"
    );
    assert_eq!(ran.code, 0);
}

#[tokio::test]
async fn a_report_for_programs_says_the_same() {
    let ran = policies(&["check", "at/dangerous.toml", "--format", "json"]).await;
    let json = ran.json();
    assert_eq!((&json["errors"], &json["warnings"]), (&4.into(), &2.into()));
    assert_eq!(json["findings"][0]["line"], 3);
    assert_eq!(json["services"][0]["is_refused"], true);
    let ran = policies(&["check", "at/defensible.toml", "--format", "json"]).await;
    let psp = &ran.json()["services"][0]["dependencies"][1];
    assert_eq!(psp["potential_ms"], 1100.0);
    assert_eq!(
        psp["split"][3],
        serde_json::json!({ "what": "left", "ms": 400.0 })
    );
}

/// SARIF 2.1.0: what a scanner needs of each result (sections 3.13, 3.14, 3.27, 3.29).
#[tokio::test]
async fn a_report_for_scanners_names_rule_level_file_and_line() {
    let ran = policies(&["check", "at/dangerous.toml", "--format", "sarif"]).await;
    assert_eq!(ran.code, 1);
    let sarif = ran.json();
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "mamparo");
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 6);
    for result in results {
        let is_rule = |rule: &Value| rule["id"] == result["ruleId"];
        assert_eq!(rules.iter().filter(|rule| is_rule(rule)).count(), 1);
        assert!(
            result["message"]["text"]
                .as_str()
                .expect("text")
                .contains("Remedy: ")
        );
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(
            place["artifactLocation"]["uri"],
            "tests/policies/dangerous.toml"
        );
        assert!(place["region"]["startLine"].as_u64().expect("a line") > 0);
    }
    assert_eq!(results[0]["level"], "error");
}

#[tokio::test]
async fn what_makes_no_check_is_one_line() {
    let wrong: [(&[&str], &str); 6] = [
        (
            &["check", "no/such.toml"],
            "no/such.toml: there is no such file",
        ),
        (
            &["check", "build.rs"],
            "call it .toml, .yaml, .yml or .json",
        ),
        (&["check", "src"], "src: no policy file is in that folder"),
        (
            &["check", "at/mesh.toml", "at/mesh.toml"],
            "there are two services called mesh",
        ),
        (
            &["check", "at/mesh.toml", "--format", "xml"],
            "[possible values: text, json, sarif]",
        ),
        (
            &["explain", "psp", "--policy", "no/such.toml"],
            "there is no such file",
        ),
    ];
    for (args, says) in wrong {
        let ran = policies(args).await;
        assert!(
            ran.stderr.starts_with("error: "),
            "{args:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
        assert_eq!((ran.code, ran.stdout.len()), (2, 0), "{args:?}");
    }
}

/// What a file says must not steer a terminal.
#[tokio::test]
async fn a_key_with_an_escape_is_shown_without_it() {
    let ran = policies(&["check", "at/escape.toml"]).await;
    assert_eq!(ran.code, 1);
    assert!(!ran.stdout.contains(&0x1b), "{ran:?}");
}

#[tokio::test]
async fn a_file_that_says_nothing_passes_with_a_warning() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty.toml");
    std::fs::write(&file, "# to be written\n").unwrap();
    let file = file.display().to_string();
    let ran = mamparo(&["check", &file]).await;
    assert_eq!(ran.code, 0);
    assert!(stdout(&ran).contains("warning[nothing-configured]"));
    let strict = mamparo(&["check", &file, "--deny-warnings"]).await;
    assert_eq!(strict.code, 1);
}
