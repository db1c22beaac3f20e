use std::time::Duration;

use mamparo_core::clock;
use mamparo_durable::backend::{Begun, QueueName, Store as _, Trouble};
use mamparo_testkit::private::PrivatePostgres;
use mamparo_testkit::proxy::{Fault, FaultProxy};
use sqlx::Executor as _;

use super::support::{connection, fresh_with, id, new, schema, settings};
use crate::Postgres;

/// Begins it, asking again as a caller does, and says how often it was refused.
async fn begin(postgres: &Postgres, name: &str) -> usize {
    let mut failed = 0;
    loop {
        match postgres.begin(new(name)).await {
            Ok(_) => return failed,
            Err(error) => {
                assert_eq!(error.trouble(), Trouble::Unavailable, "{error}");
                failed += 1;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_started_again_loses_nothing_that_was_answered() {
    let server = PrivatePostgres::start().await;
    let settings = settings(&server.url()).acquire_timeout(Duration::from_millis(500));
    let postgres = Postgres::connect(settings.build().unwrap()).await.unwrap();
    let begun: Vec<_> = (0..8)
        .map(|writer| {
            let postgres = postgres.clone();
            tokio::spawn(async move {
                let (mut names, mut failed) = (Vec::new(), 0);
                for number in 0..200 {
                    let name = format!("t{writer}-{number}");
                    failed += begin(&postgres, &name).await;
                    names.push(name);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                (names, failed)
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.kill().await;
    let down = clock::now();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let down = down.elapsed();
    server.restart().await;
    for writer in begun {
        let (names, failed) = writer.await.unwrap();
        // Each failure takes as long as a connection may: nobody asks in a loop without a pause.
        assert!(
            failed as f64 <= down.as_secs_f64() * 4.0 + 8.0,
            "{failed} failures in {down:?}"
        );
        for name in names {
            assert!(
                postgres
                    .load(vec![id(&name)])
                    .await
                    .pop()
                    .unwrap()
                    .unwrap()
                    .is_some(),
                "{name} is lost"
            );
        }
    }
}

#[tokio::test]
async fn who_waits_for_messages_is_woken_again_after_a_restart() {
    let server = PrivatePostgres::start().await;
    let settings = settings(&server.url()).poll(Duration::from_secs(60));
    let one = Postgres::connect(settings.clone().build().unwrap())
        .await
        .unwrap();
    let other = Postgres::connect(settings.build().unwrap()).await.unwrap();
    server.stop().await;
    server.restart().await;
    // Until the one that listens is connected again.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let answers = one.queue(QueueName::Answers);
    let waiting = tokio::spawn(async move { answers.ready().await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!waiting.is_finished());
    let answer =
        mamparo_durable::machine::Answer::new(1, 0, mamparo_durable::machine::Outcome::Success);
    let message = mamparo_durable::backend::Message::Answer {
        id: id("a"),
        answer,
    };
    other
        .queue(QueueName::Answers)
        .publish(vec![message])
        .await
        .unwrap();
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn of_connections_from_before_a_restart_one_fails_and_the_others_are_not_tried() {
    let server = PrivatePostgres::start().await;
    let postgres = Postgres::connect(settings(&server.url()).build().unwrap())
        .await
        .unwrap();
    let answers = postgres.queue(QueueName::Answers);
    futures_util::future::join_all((0..8).map(|_| answers.depth())).await;
    server.stop().await;
    server.restart().await;
    let mut failed = 0;
    for _ in 0..10 {
        failed += usize::from(answers.depth().await.is_err());
    }
    assert!(failed <= 1, "{failed} failed");
}

#[tokio::test]
async fn connections_that_are_cut_or_swallowed_fail_in_bounded_time_and_are_replaced() {
    let server = PrivatePostgres::shared().await;
    let proxy = FaultProxy::start(server.address()).await;
    let settings = settings(&server.url_at(proxy.address()))
        .schema(schema())
        .acquire_timeout(Duration::from_secs(2))
        .statement_timeout(Duration::from_secs(2));
    let postgres = Postgres::connect(settings.build().unwrap()).await.unwrap();
    begin(&postgres, "before").await;
    for (name, fault) in [
        ("reset", Fault::ResetAfter(0)),
        ("closed", Fault::TruncateAfter(0)),
        ("swallowed", Fault::BlackHole),
        ("refused", Fault::Refuse),
    ] {
        proxy.set(fault).await;
        let start = clock::now();
        let failed = postgres.begin(new(name)).await;
        // Those that were open when it began to refuse, go on.
        if name != "refused" {
            assert_eq!(
                failed.unwrap_err().trouble(),
                Trouble::Unavailable,
                "{name}"
            );
        }
        let took = start.elapsed();
        assert!(took < Duration::from_secs(15), "{name} took {took:?}");
        proxy.set(Fault::None).await;
        begin(&postgres, name).await;
        assert!(
            matches!(postgres.begin(new(name)).await, Ok(Begun::Exists(_))),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_told_in_one_line_at_the_start() {
    let server = PrivatePostgres::start().await;
    let url = server.url();
    server.stop().await;
    let settings = settings(&url)
        .acquire_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let error = Postgres::connect(settings).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unavailable);
    let said = error.to_string();
    assert!(said.starts_with("PostgreSQL does not answer"), "{said}");
}

/// Somebody holds the table: what waits behind it fails in bounded time, and what finds no room at once.
#[tokio::test]
async fn a_table_that_somebody_locks_lets_no_more_wait_than_may_and_none_for_ever() {
    let postgres = fresh_with(|settings| {
        settings
            .waiting(2)
            .writers(1)
            .acquire_timeout(Duration::from_millis(500))
            .statement_timeout(Duration::from_secs(3))
    })
    .await;
    begin(&postgres, "before").await;
    let mut locker = connection(&postgres).await;
    locker
        .execute("SET idle_in_transaction_session_timeout = 0; BEGIN")
        .await
        .unwrap();
    locker.execute("LOCK TABLE transactions").await.unwrap();
    let start = clock::now();
    let waiting = (0..10).map(|number| {
        let postgres = postgres.clone();
        async move {
            // One after the other, so that the first is with the writer before the last looks for room.
            tokio::time::sleep(Duration::from_millis(50 * number)).await;
            let error = postgres
                .begin(new(&format!("t{number}")))
                .await
                .unwrap_err();
            assert_eq!(error.trouble(), Trouble::Unavailable);
            error.to_string()
        }
    });
    let errors = futures_util::future::join_all(waiting).await;
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    let full = errors
        .iter()
        .filter(|error| error.starts_with("too many writes wait"))
        .count();
    let timed_out = errors
        .iter()
        .filter(|error| error.contains("57014"))
        .count();
    assert!(full >= 5 && timed_out >= 2, "{errors:#?}");
    locker.execute("ROLLBACK").await.unwrap();
    begin(&postgres, "after").await;
}
