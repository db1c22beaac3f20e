//! `mamparo consume` and `mamparo dlq --amqp`, with a real broker and real commands.

use std::process::Stdio;
use std::time::Duration;

use mamparo_rabbitmq::{DeadLetters, Message, Publisher, Settings, Topology};
use mamparo_testkit::private::PrivateRabbit;
use tokio::process::{Child, Command};

use crate::run::{Ran, mamparo};

const PATIENCE: Duration = Duration::from_secs(60);

/// A queue of this name, with messages in it, and who looks at its depths.
async fn queue(
    name: &str,
    messages: &[(&'static str, &'static str)],
) -> (String, Publisher, DeadLetters) {
    let url = PrivateRabbit::shared().await.url();
    let limit = Duration::from_secs(20);
    let builder = Settings::builder(&url)
        .connect_timeout(limit)
        .publish_timeout(limit);
    let settings = builder.build().unwrap();
    let delay = Duration::from_millis(300);
    let topology = Topology::builder(name).delay(delay).build().unwrap();
    let publisher = Publisher::new(settings.clone());
    publisher.declare(&topology).await.unwrap();
    for (id, body) in messages {
        publisher
            .publish("", name, Message::new(*body).id(id))
            .await
            .unwrap();
    }
    (url, publisher, DeadLetters::in_topology(settings, topology))
}

fn consume(url: &str, queue: &str, exec: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mamparo"));
    command
        .args([
            "consume", "--amqp", url, "--queue", queue, "--exec", exec, "--delay", "300ms",
        ])
        .args([
            "--max-attempts",
            "2",
            "--timeout",
            "2s",
            "--owner",
            "team payments",
            "--runbook",
            "https://wiki/dlq",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command.spawn().expect("the command starts")
}

/// Waits until so many are dead and no others are left.
async fn settled(letters: &DeadLetters, dead: u32) {
    let all = async {
        loop {
            let depths = letters.depths().await.unwrap();
            if (depths.ready, depths.retry, depths.dead) == (0, 0, dead) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let done = tokio::time::timeout(PATIENCE, all).await;
    assert!(done.is_ok(), "{:?}", letters.depths().await);
}

/// Stops it as an operator does, and returns its exit code and what it wrote to stderr.
async fn stop(consumer: Child) -> (Option<i32>, String) {
    let number = consumer.id().expect("it runs").to_string();
    let killed = Command::new("kill")
        .args(["-s", "TERM", &number])
        .status()
        .await;
    assert!(killed.unwrap().success());
    let ended = tokio::time::timeout(PATIENCE, consumer.wait_with_output()).await;
    let ended = ended.expect("it ends").unwrap();
    (
        ended.status.code(),
        String::from_utf8(ended.stderr).unwrap(),
    )
}

async fn dlq(deed: &str, url: &str, queue: &str, more: &[&str]) -> Ran {
    mamparo(&[&["dlq", deed, "--amqp", url, "--queue", queue], more].concat()).await
}

#[tokio::test]
async fn the_exit_code_of_a_command_settles_its_message_and_an_operator_does_the_rest() {
    let messages = [
        ("good", "exit 0"),
        ("poison", "exit 65"),
        ("never", "exit 1"),
        ("hangs", "sleep 600 & wait"),
    ];
    let (url, _publisher, letters) = queue("shop", &messages).await;
    let consumer = consume(&url, "shop", "sh");
    settled(&letters, 3).await;
    let (code, told) = stop(consumer).await;
    assert_eq!(code, Some(0), "{told}");
    let dead = "poison: a dead letter (permanent): the command ended with exit status: 65";
    let dead = format!("{dead} team payments https://wiki/dlq");
    assert!(told.contains(&dead), "{told}");

    look(&url).await;
    operate(&url).await;
    let depths = letters.depths().await.unwrap();
    assert_eq!((depths.ready, depths.dead), (2, 0));
}

/// Lists and shows them.
async fn look(url: &str) {
    let ran = dlq("list", url, "shop", &["--json"]).await;
    let json = ran.json();
    let mut found: Vec<(&str, &str, &str)> = json["dead_letters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|letter| ["message_id", "reason", "detail"].map(|key| letter[key].as_str().unwrap()))
        .map(|[id, reason, detail]| (id, reason, detail))
        .collect();
    found.sort_unstable();
    let expected = [
        ("hangs", "exhausted", "no answer within 2s"),
        (
            "never",
            "exhausted",
            "the command ended with exit status: 1",
        ),
        (
            "poison",
            "permanent",
            "the command ended with exit status: 65",
        ),
    ];
    assert_eq!(found, expected);
    let ran = dlq("list", url, "shop", &["--filter", "id=poison"]).await;
    let line = String::from_utf8(ran.stdout).unwrap();
    assert!(
        line.contains("owner team payments  runbook https://wiki/dlq") && line.lines().count() == 1,
        "{line}"
    );
    let ran = dlq("show", url, "shop", &["1"]).await;
    assert!(
        String::from_utf8_lossy(&ran.stdout).contains("x-dead-at: 20"),
        "{ran:?}"
    );
}

/// Puts two back, and discards the third.
async fn operate(url: &str) {
    let dry = dlq(
        "requeue",
        url,
        "shop",
        &["--filter", "reason=exhausted", "--dry-run"],
    )
    .await;
    assert_eq!(&*dry.stdout, b"2 would be requeued\n");
    let ran = dlq(
        "requeue",
        url,
        "shop",
        &["--filter", "reason=exhausted", "--rate", "100/s"],
    )
    .await;
    assert_eq!(
        (ran.code, &*ran.stdout),
        (0, &b"2 requeued\n"[..]),
        "{}",
        ran.stderr
    );
    let ran = dlq(
        "discard",
        url,
        "shop",
        &["--all", "--reason", "it is a test"],
    )
    .await;
    assert_eq!(
        (ran.code, &*ran.stdout),
        (0, &b"1 discarded\n"[..]),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("discarded, since it is a test:     1  poison  permanent"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_command_may_be_anything_that_the_shell_understands() {
    for (queue_name, exec) in [
        ("assigned", "CODE=65 sh -c 'exit $CODE'"),
        ("grouped", "(cd / && exit 65)"),
    ] {
        let (url, _publisher, letters) = queue(queue_name, &[("it", "")]).await;
        let consumer = consume(&url, queue_name, exec);
        settled(&letters, 1).await;
        let (code, told) = stop(consumer).await;
        assert_eq!(code, Some(0), "{told}");
    }
}

/// Five in ten seconds are one every two.
#[tokio::test]
async fn letters_are_put_back_at_a_rate_below_one_a_second_and_a_number_said_twice_is_one() {
    let (url, publisher, letters) = queue("slowly", &[]).await;
    for id in ["a", "b"] {
        let message = Message::new("").id(id);
        publisher.publish("", "slowly.dlq", message).await.unwrap();
    }
    let more = ["1", "2", "2", "--rate", "5/10s"];
    let began = mamparo_core::clock::now();
    let ran = dlq("requeue", &url, "slowly", &more).await;
    assert!(mamparo_core::clock::now() - began >= Duration::from_secs(2));
    assert_eq!(
        (ran.code, &*ran.stdout),
        (0, &b"2 requeued\n"[..]),
        "{}",
        ran.stderr
    );
    assert_eq!(letters.depths().await.unwrap().ready, 2);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_in_one_line() {
    let (url, ..) = queue("refused", &[]).await;
    let wrong = url.replace("guest:guest", "guest:wrong");
    let no_command = ["--queue", "q", "--exec", "mamparo-is-no-command"];
    let ran = mamparo(&[&["consume", "--amqp", &url][..], &no_command].concat()).await;
    assert_eq!(
        (ran.code, ran.last_line()),
        (
            2,
            "error: --exec: there is no command \"mamparo-is-no-command\""
        )
    );
    let ran = mamparo(&["consume", "--amqp", &wrong, "--queue", "q", "--exec", "cat"]).await;
    assert!(
        ran.code == 1 && ran.last_line().contains("as guest: ACCESS_REFUSED"),
        "{}",
        ran.stderr
    );
    let ran = mamparo(&[
        "consume", "--amqp", &url, "--queue", "refused", "--exec", "cat",
    ])
    .await;
    assert!(
        ran.code == 1 && ran.last_line().contains("inequivalent arg 'x-message-ttl'"),
        "{}",
        ran.stderr
    );
    let ran = dlq("list", &url, "nobody", &[]).await;
    assert_eq!(
        (ran.code, ran.last_line()),
        (1, "error: there is no queue nobody.dlq")
    );
    let ran = dlq("list", "amqp://127.0.0.1:1", "q", &[]).await;
    assert!(
        ran.code == 4 && ran.last_line().contains("127.0.0.1:1"),
        "{}",
        ran.stderr
    );
    let ran = dlq("requeue", &url, "refused", &["7"]).await;
    assert_eq!(
        (ran.code, &*ran.stdout),
        (1, &b"0 requeued\n"[..]),
        "{}",
        ran.stderr
    );
    for (more, says) in [
        (&["--all"][..], "--reason"),
        (&["--filter", "x=1"], "write KEY=TEXT"),
    ] {
        let ran = dlq("discard", &url, "refused", more).await;
        assert!(ran.code == 2 && ran.stderr.contains(says), "{}", ran.stderr);
    }
    let ran = mamparo(&["dlq", "list"]).await;
    assert!(
        ran.code == 2 && ran.stderr.contains("--store"),
        "{}",
        ran.stderr
    );
}
