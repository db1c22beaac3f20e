//! Policies, explained.

use insta::assert_snapshot;

use crate::check::{policies, stdout};

#[tokio::test]
async fn a_policy_is_said_layer_by_layer_each_value_with_its_origin() {
    let ran = policies(&["explain", "catalog", "--policy", "at/defensible.toml"]).await;
    assert_eq!(ran.code, 0);
    assert_snapshot!(stdout(&ran));
}

#[tokio::test]
async fn a_hedge_is_said_in_the_place_of_the_retry() {
    let ran = policies(&["explain", "search", "--policy", "at/defensible.toml"]).await;
    let text = stdout(&ran);
    assert!(
        text.contains("sent again beside the first, up to 2 attempts in all"),
        "{text}"
    );
    assert!(text.contains("retry = off  (default)"), "{text}");
    assert!(text.contains("hedge.delay = \"80ms\""), "{text}");
}

#[tokio::test]
async fn a_dependency_without_resends_or_limit_is_said_to_be_so() {
    let ran = policies(&["explain", "db", "--policy", "at/owned_orders.toml"]).await;
    assert!(
        stdout(&ran).contains("A request is sent once, for 2s at most, and never again."),
        "{ran:?}"
    );
}

/// 8 % of 10 000 a minute is 800 retries.
#[tokio::test]
async fn a_budget_is_said_in_resends() {
    let file = "at/defensible.toml";
    let ran = policies(&["explain", "psp", "--policy", file, "--traffic", "10000/m"]).await;
    let text = stdout(&ran);
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(
        last,
        "budget: 8 % of 10000 operations in 1m are 800 resends"
    );
    let ran = policies(&["explain", "catalog", "--policy", file, "--traffic", "100/s"]).await;
    let text = stdout(&ran);
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(
        last,
        "budget: 20 % of 100 operations in 1s are 20 resends, and budget.min_per_second pays for up to 10 more"
    );
}

#[tokio::test]
async fn a_table_for_a_readme_has_a_row_for_each_dependency() {
    let ran = policies(&["explain", "--policy", "at/defensible.toml", "--markdown"]).await;
    assert_snapshot!(stdout(&ran));
}

#[tokio::test]
async fn a_program_gets_each_value_with_its_origin() {
    let ran = policies(&[
        "explain",
        "catalog",
        "--policy",
        "at/defensible.toml",
        "--json",
    ])
    .await;
    let json = ran.json();
    let catalog = &json["dependencies"][0];
    assert_eq!(catalog["name"], "catalog");
    assert_eq!(catalog["figures"]["max_attempts"], 3);
    let settings = catalog["settings"].as_array().expect("settings");
    let deadline = settings
        .iter()
        .find(|it| it["path"] == "deadline")
        .expect("one");
    assert_eq!(deadline["value"], "2s");
    assert_eq!(deadline["origin"]["profile"], "internal");
    assert_eq!(deadline["origin"]["line"], 5);
}

#[tokio::test]
async fn what_is_not_there_or_refused_is_not_explained() {
    let ran = policies(&["explain", "nobody", "--policy", "at/defensible.toml"]).await;
    assert_eq!(
        ran.stderr,
        "error: there is no policy for the dependency \"nobody\": the files name catalog, psp, search\n"
    );
    assert_eq!((ran.code, ran.stdout.len()), (2, 0));
    let ran = policies(&["explain", "catalog", "--policy", "at/dangerous.toml"]).await;
    assert!(
        ran.stderr.contains("attempts-exceed-deadline"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.last_line()
            .starts_with("error: the policies are refused"),
        "{}",
        ran.stderr
    );
    assert_eq!((ran.code, ran.stdout.len()), (1, 0));
}

#[tokio::test]
async fn a_server_is_part_of_the_whole_in_every_form() {
    let file = "at/server.toml";
    let ran = policies(&["explain", "--policy", file]).await;
    assert!(
        stdout(&ran).contains("idempotency.retention = \"3d\"  (tests/policies/server.toml:8)"),
        "{ran:?}"
    );
    let ran = policies(&["explain", "--policy", file, "--markdown"]).await;
    assert!(
        stdout(&ran).ends_with(
            "| server | |\n|---|---|\n| max_deadline | \"30s\" |\n| idempotency.key | \"principal\" |\n| idempotency.retention | \"3d\" |\n"
        ),
        "{ran:?}"
    );
    let ran = policies(&["explain", "--policy", file, "--json"]).await;
    let settings = ran.json()["server"]["settings"].clone();
    let written = settings.as_array().unwrap().iter();
    let written = written.filter(|it| it["origin"]["from"] == "file");
    let paths: Vec<_> = written.map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        ["max_deadline", "idempotency.key", "idempotency.retention"]
    );
    let one = policies(&["explain", "psp", "--policy", file, "--json"]).await;
    assert!(one.json().get("server").is_none(), "{one:?}");
}
