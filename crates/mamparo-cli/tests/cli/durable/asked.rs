use super::engine::Place;
use crate::run::mamparo;

async fn refused(place: &Place, args: &[&str], code: i32, says: &str) {
    let ran = place.run(args).await;
    assert!(ran.last_line().contains(says), "{args:?}: {}", ran.stderr);
    assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_in_one_line() {
    let place = Place::new("refused", "http://127.0.0.1:9");
    refused(&place, &["tx", "show", "p"], 2, "there is no such file").await;
    assert_eq!(place.submit("p").await.code, 0);
    refused(
        &place,
        &["tx", "show", "q"],
        1,
        "q: there is no such transaction",
    )
    .await;
    refused(
        &place,
        &["tx", "cancel", "q"],
        1,
        "q: there is no such transaction",
    )
    .await;
    refused(
        &place,
        &["tx", "cancel", "p"],
        1,
        "p is IN_FLIGHT: its state does not allow that",
    )
    .await;
    let past = ["tx", "retry-now", "p", "--at", "2030-01-31T08:00:00Z"];
    refused(&place, &past, 1, "p is IN_FLIGHT").await;
    let dead = ["dlq", "requeue", "--queue", "fires", "7"];
    refused(&place, &dead, 1, "1 were there no more").await;
    refused(
        &place,
        &["dlq", "show", "--queue", "answers", "7"],
        1,
        "no dead letter 7 of answers",
    )
    .await;
}

#[tokio::test]
async fn a_request_that_no_policy_knows_and_a_misspelt_option_are_refused() {
    let place = Place::new("unknown", "http://127.0.0.1:9");
    assert_eq!(place.submit("p").await.code, 0);
    let nowhere = ["tx", "submit", "r", "/charges", "--dependency", "psp"];
    refused(&place, &nowhere, 2, "a path needs the dependency's `url`").await;
    let policies = place.policies();
    let stranger = [
        "tx",
        "submit",
        "r",
        "/",
        "--dependency",
        "bank",
        "--policy",
        &policies,
    ];
    refused(
        &place,
        &stranger,
        2,
        "there is no policy for the dependency \"bank\"",
    )
    .await;
    for (args, says) in [
        (
            &["tx", "list", "--state", "LOST"][..],
            "it is one of IN_FLIGHT",
        ),
        (
            &["tx", "retry-now", "p", "--at", "tomorrow"],
            "must be UTC in RFC 3339",
        ),
        (&["dlq", "discard", "--queue", "fires", "--all"], "--reason"),
        (&["tx", "show", ""], "must not be empty"),
        (
            &["engine", "run", "--policy", &policies, "--keep", "0s"],
            "it must be longer than zero, or `forever`",
        ),
        (
            &["engine", "run", "--policy", &policies, "--keep", "2s"],
            "must be from 1 min to 36500 days",
        ),
    ] {
        let ran = place.run(args).await;
        assert!(ran.code == 2 && ran.stderr.contains(says), "{}", ran.stderr);
    }
    let ran = mamparo(&["tx", "list", "--store", "mysql:here"]).await;
    assert!(
        ran.code == 2 && ran.stderr.contains("write sqlite:FILE, postgres:"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_body_that_is_too_large_and_a_file_of_another_program_are_refused() {
    let place = Place::new("strange", "http://127.0.0.1:9");
    let large = std::env::temp_dir().join(format!("mamparo-large-{}", std::process::id()));
    std::fs::write(&large, vec![b'x'; 300_000]).unwrap();
    let data = format!("@{}", large.display());
    let submit = [
        "tx",
        "submit",
        "p",
        "http://127.0.0.1:9/",
        "--dependency",
        "psp",
        "-d",
        &data,
    ];
    refused(&place, &submit, 1, "must have at most 262144 bytes").await;
    let store = format!("sqlite:{}", large.display());
    let ran = mamparo(&["tx", "list", "--store", &store]).await;
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    std::fs::remove_file(large).unwrap();
}

/// A dependency's answer is a reason too.
#[tokio::test]
async fn what_others_wrote_steers_no_terminal() {
    let place = Place::new("plain", "http://127.0.0.1:9");
    assert_eq!(place.submit("p").await.code, 0);
    let reason = "gone\u{1b}[2J\n0 stuck\u{202e}";
    let resolve = ["tx", "resolve", "p", "--reason", reason];
    assert_eq!(place.run(&resolve).await.code, 0);
    let ran = place.run(&["tx", "show", "p"]).await;
    let shown = String::from_utf8(ran.stdout).unwrap();
    let last = shown.lines().last().unwrap();
    let escaped = r"gone\u{1b}[2J\n0 stuck\u{202e}";
    assert!(last.ends_with(escaped), "{shown}");
}

#[tokio::test]
async fn each_number_counts_once_and_none_is_left_out_silently() {
    let place = Place::new("numbers", "http://127.0.0.1:9");
    assert_eq!(place.submit("p").await.code, 0);
    let twice = ["dlq", "requeue", "--queue", "fires", "7", "7", "8"];
    refused(&place, &twice, 1, "2 were there no more").await;
    let more = [&twice[..], &["--max", "1"]].concat();
    refused(&place, &more, 2, "2 numbers are more than --max 1").await;
}

#[tokio::test]
async fn an_empty_store_has_no_dead_letters_and_nothing_to_mend() {
    let place = Place::new("empty", "http://127.0.0.1:9");
    assert_eq!(place.submit("p").await.code, 0);
    let ran = place.run(&["dlq", "list", "--json"]).await;
    assert_eq!(
        (ran.code, &ran.json()["dead_letters"]),
        (0, &serde_json::json!([]))
    );
    let all = ["dlq", "requeue", "--queue", "fires", "--all", "--dry-run"];
    let ran = place.run(&all).await;
    assert_eq!(
        (ran.code, &ran.stdout[..]),
        (0, &b"0 would be requeued\n"[..])
    );
    let ran = place.run(&["reconcile", "--json"]).await;
    assert_eq!((ran.code, &ran.json()["found"]), (0, &0.into()));
    // Nobody has sent it, and nobody answers: the reconciler publishes its request again.
    let ran = place
        .run(&["reconcile", "--answer-within", "1ms", "--json"])
        .await;
    assert_eq!(
        (ran.code, &ran.json()["mended"]),
        (0, &1.into()),
        "{}",
        ran.stderr
    );
}

/// What, where and why, without the password.
#[tokio::test]
async fn a_postgres_that_is_not_there_is_told_with_its_place() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let store = format!("postgres://me:secret@{address}/shop?connect_timeout=1");
    let ran = mamparo(&["tx", "list", "--store", &store]).await;
    let place = format!("error: postgres://{address}/shop: PostgreSQL does not answer");
    assert!(ran.stderr.starts_with(&place), "{}", ran.stderr);
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
    assert_eq!((ran.code, ran.stderr.lines().count()), (4, 1));
}
