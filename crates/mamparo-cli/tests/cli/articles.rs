//! The worked examples of the articles that the policies follow, each with its exact figures.

use insta::assert_snapshot;

use crate::check::{policies, stdout};

fn files(folder: &str) -> Vec<String> {
    let names = ["client", "gateway", "service"];
    let file = |name| format!("at/articles/{folder}/{name}.toml");
    names.into_iter().map(file).collect()
}

async fn check(folder: &str, more: &[&str]) -> crate::run::Ran {
    let files = files(folder);
    let files = files.iter().map(String::as_str);
    let args: Vec<_> = ["check"].into_iter().chain(files).collect();
    policies(&[&args, more].concat()).await
}

/// Four attempts of 5 s in each of three layers, of requests that may take effect twice, without deadline, jitter or a
/// look at what is slow.
#[tokio::test]
async fn the_dangerous_configuration_is_refused_and_each_reason_told() {
    let ran = check("dangerous", &[]).await;
    assert_eq!(ran.code, 1);
    let text = stdout(&ran);
    for reason in [
        "4 × 5000 ms + 700 ms = 20700 ms",
        "client → gateway → service → payments: at worst 4 × 4 × 4 = 64 calls",
        "warning[no-jitter]",
        "error[unsafe-resend]",
        "warning[breaker-sees-too-little]",
        "warning[no-deadline]",
        "warning[two-owners-on-a-path]",
        "refused: 3 errors, 12 warnings",
    ] {
        assert!(text.contains(reason), "{reason} is not in\n{text}");
    }
    assert_snapshot!(text);
}

/// Two attempts of 400 ms within 2 s, one owner of the retry, a key, slow calls seen, a budget of traffic and of concurrency.
#[tokio::test]
async fn the_defensible_configuration_passes_without_a_word() {
    let ran = check("defensible", &["--deny-warnings"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = stdout(&ran);
    for figure in [
        "2 × 400 ms + 100 ms = 900 ms; a deadline of 2000 ms",
        "client → gateway → service → payments: at worst 1 × 1 × 2 = 2 calls; service owns the retry",
        "ok: 3 dependencies, nothing contradicts itself",
    ] {
        assert!(text.contains(figure), "{figure} is not in\n{text}");
    }
}

/// 2 s, of which 300 ms are gone before the dependency and 200 ms are kept back: 1 500 ms, for 500 + 100 + 500 + 400 ms.
#[tokio::test]
async fn a_deadline_of_1500_ms_is_split_to_the_millisecond() {
    let ran = policies(&["check", "at/defensible.toml", "--format", "json"]).await;
    let psp = &ran.json()["services"][0]["dependencies"][1];
    let parts = psp["split"].as_array().expect("parts");
    let parts: Vec<_> = parts.iter().map(|part| part["ms"].as_f64()).collect();
    assert_eq!(parts, [500.0, 100.0, 500.0, 400.0].map(Some));
    assert_eq!(psp["deadline_ms"], 1500.0);
}

/// Four attempts of 1 s with waits of 100, 200 and 400 ms are 4 700 ms, and the user waits for 2 000.
#[tokio::test]
async fn attempts_of_4700_ms_do_not_fit_2000_ms() {
    let text = stdout(&policies(&["check", "at/dangerous.toml"]).await);
    assert!(text.contains("4 × 1000 ms + 700 ms = 4700 ms does not fit 2000 ms: 1 attempt fits"));
}

/// Three more attempts than the first in each of three layers are 64 calls; three in all, 27.
#[tokio::test]
async fn three_layers_are_64_calls_or_27() {
    for (folder, product) in [
        ("chain", "4 × 4 × 4 = 64 calls"),
        ("three", "3 × 3 × 3 = 27 calls"),
    ] {
        let file = |name| format!("at/{folder}/{name}.toml");
        let files = ["gateway", "orders", "inventory"].map(file);
        let ran = policies(&["check", &files[0], &files[1], &files[2]]).await;
        assert!(stdout(&ran).contains(product), "{folder}");
    }
}

/// 8 % of 10 000 requests a minute are 800 retries.
#[tokio::test]
async fn a_budget_of_8_percent_of_10000_a_minute_is_800_resends() {
    let file = "at/defensible.toml";
    let ran = policies(&["explain", "psp", "--policy", file, "--traffic", "10000/m"]).await;
    assert!(stdout(&ran).ends_with("budget: 8 % of 10000 operations in 1m are 800 resends\n"));
}
