//! `mamparo events`, on an outbox in a file and in PostgreSQL, with relays' claims on it.

use std::path::PathBuf;
use std::time::Duration;

use mamparo_durable::events::{Event, EventStore, Settlement};
use mamparo_postgres::sqlx::PgPool;
use mamparo_postgres::{PostgresEvents, Settings};
use mamparo_sqlite::{SqliteEvents, TransactionError};
use mamparo_testkit::private::PrivatePostgres;
use serde_json::{Value, json};

use crate::run::{Ran, mamparo};

const LONG: Duration = Duration::from_secs(60);

/// A file for a test, whose name is the test's own.
fn file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("events-{name}"));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join("shop.db")
}

/// Four orders, of which the second of order-1 waits behind the first.
fn orders() -> Vec<Event> {
    let order = |id: &str, key: &str| {
        let event = Event::builder(id).key(key).to("orders", "order.placed");
        event.content_type("application/json").header("x-by", "web")
    };
    let all = [
        order("order-1/placed", "order-1").payload(r#"{"order":1}"#),
        order("order-1/paid", "order-1"),
        order("order-2/placed", "order-2").payload(&b"\xff\x1b"[..]),
        order("order-3/placed", "order-3"),
    ];
    all.map(|event| event.build().unwrap()).into()
}

/// Parks what the broker does not take: the first of each order.
async fn park(store: &dyn EventStore) {
    let claimed = store.claim(10, LONG).await.unwrap();
    let settled = claimed.events.iter().map(|it| {
        let settlement = match it.event.as_ref().unwrap().id() {
            "order-1/paid" => Settlement::Later {
                wait: Duration::ZERO,
                failed: false,
            },
            _ => Settlement::Parked("no queue takes it\u{1b}[2J".into()),
        };
        (it.number, settlement)
    });
    let settled = store.settle(claimed.id, settled.collect()).await;
    assert_eq!(settled.unwrap(), 0);
}

async fn in_file(name: &str) -> (String, SqliteEvents) {
    let path = file(name);
    let events = SqliteEvents::open(&path).unwrap();
    let outbox = events.clone();
    let put = events.transaction(move |tx| {
        let mut all = orders().into_iter();
        all.try_for_each(|event| outbox.put(tx, &event))
    });
    put.await.map_err(|error: TransactionError| error).unwrap();
    park(&events).await;
    (format!("sqlite:{}", path.display()), events)
}

async fn run(store: &[&str], args: &[&str]) -> Ran {
    mamparo(&[&["events"], args, store].concat()).await
}

fn text(ran: &Ran) -> &str {
    std::str::from_utf8(&ran.stdout).unwrap()
}

fn listed(ran: &Ran) -> Vec<Value> {
    let parked = ran.json()["parked"].as_array().unwrap().clone();
    parked.into_iter().map(|mut it| it["id"].take()).collect()
}

/// The same on either: what is parked is seen, given back, and leaves before what waits behind it, or is removed.
async fn go_through(store: &[&str], outbox: &dyn EventStore) {
    let ran = run(store, &["list", "--json"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let all = ["order-1/placed", "order-2/placed", "order-3/placed"];
    assert_eq!(listed(&ran), all);
    let first = &ran.json()["parked"][0];
    assert_eq!(first["reason"], "no queue takes it\u{1b}[2J");
    assert_eq!(
        (&first["failures"], &first["bytes"]),
        (&json!(1), &json!(11))
    );
    let numbers: Vec<String> = ran.json()["parked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["number"].to_string())
        .collect();
    let ran = run(
        store,
        &["list", "--max", "1", "--after", &numbers[0], "--json"],
    )
    .await;
    assert_eq!(listed(&ran), ["order-2/placed"]);

    let ran = run(store, &["requeue", "--all", "--dry-run"]).await;
    assert_eq!((ran.code, text(&ran)), (0, "3 would be requeued\n"));
    let ran = run(store, &["requeue", &numbers[0], &numbers[0], "--json"]).await;
    assert_eq!((ran.code, &ran.json()["requeued"]), (0, &json!(1)));
    let claimed = outbox.claim(10, LONG).await.unwrap();
    let ids: Vec<&str> = claimed
        .events
        .iter()
        .map(|it| it.event.as_ref().unwrap().id())
        .collect();
    assert_eq!(ids, ["order-1/placed", "order-1/paid"], "in their order");
    let ran = run(store, &["requeue", &numbers[0], &numbers[1]]).await;
    assert_eq!((ran.code, text(&ran)), (1, "1 requeued\n"));
    assert!(
        ran.last_line().contains("1 were not parked"),
        "{}",
        ran.stderr
    );

    let discard = ["discard", "--all", "--reason", "tests"];
    let ran = run(store, &[&discard[..], &["--dry-run"]].concat()).await;
    assert_eq!((ran.code, text(&ran)), (0, "1 would be discarded\n"));
    assert_eq!(outbox.backlog().await.unwrap().parked, 1);
    let ran = run(store, &discard).await;
    assert_eq!((ran.code, text(&ran)), (0, "1 discarded\n"));
    assert!(
        ran.stderr.contains("discarded, since tests: "),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("order-3/placed"), "{}", ran.stderr);
    let backlog = outbox.backlog().await.unwrap();
    assert_eq!((backlog.waiting, backlog.parked), (3, 0));
}

#[tokio::test]
async fn what_is_parked_in_a_file_is_listed_given_back_and_removed() {
    let (store, events) = in_file("all").await;
    go_through(&["--store", &store], &events).await;
}

/// And the schema is the service's own.
#[tokio::test]
async fn what_is_parked_in_postgres_is_listed_given_back_and_removed() {
    let url = PrivatePostgres::shared().await.url();
    let settings = Settings::builder(&url).schema("orders_mamparo");
    let events = PostgresEvents::connect(settings.build().unwrap())
        .await
        .unwrap();
    let pool = PgPool::connect(&url).await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    for event in orders() {
        events.put(&mut tx, &event).await.unwrap();
    }
    tx.commit().await.unwrap();
    park(&events).await;
    let elsewhere = ["--store", &url, "--schema", "nowhere"];
    let ran = run(&elsewhere, &["list"]).await;
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.last_line().contains("no such tables of mamparo"),
        "{}",
        ran.stderr
    );
    go_through(&["--store", &url, "--schema", "orders_mamparo"], &events).await;
}

#[tokio::test]
async fn one_event_is_shown_with_all_that_is_in_it_and_steers_no_terminal() {
    let (store, events) = in_file("one").await;
    let numbers: Vec<String> = events
        .parked(0, 10)
        .await
        .unwrap()
        .iter()
        .map(|it| it.number.to_string())
        .collect();
    let store = ["--store", &store];
    let ran = run(&store, &["show", &numbers[0]]).await;
    let shown = text(&ran);
    for says in [
        "order-1/placed  key order-1  to orders/order.placed  failed 1 times",
        r"no queue takes it\u{1b}[2J",
        "\n  content-type: application/json\n  x-by: web\n",
        "\n\n{\"order\":1}\n",
    ] {
        assert!(shown.contains(says), "{says}: {shown}");
    }
    let ran = run(&store, &["show", &numbers[0], "--json"]).await;
    let shown = ran.json();
    assert_eq!(shown["payload"], r#"{"order":1}"#);
    assert_eq!(shown["headers"], json!([["x-by", "web"]]));
    let ran = run(&store, &["show", &numbers[1], "--json"]).await;
    let shown = ran.json();
    assert_eq!(
        (&shown["payload"], &shown["payload_base64"]),
        (&Value::Null, &json!("/xs="))
    );
    let ran = run(&store, &["show", &numbers[1]]).await;
    assert!(!ran.stdout.contains(&0x1b), "{}", text(&ran));
    let ran = run(&store, &["show", "99"]).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.last_line().contains("no event 99 is parked"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_nothing_is_made() {
    let path = file("refused");
    let store = format!("sqlite:{}", path.display());
    let store = ["--store", &store];
    let ran = run(&store, &["list"]).await;
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(!path.exists());
    drop(mamparo_sqlite::SqliteDurable::open(&path).unwrap());
    let ran = run(&store, &["list"]).await;
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.last_line().contains("no events in it"),
        "{}",
        ran.stderr
    );
    for (args, says) in [
        (&["discard", "--all"][..], "--reason"),
        (&["requeue"], "NUMBERS"),
        (&["requeue", "7", "--all"], "cannot be used with"),
        (&["requeue", "0"], "0 is not in"),
        (
            &["requeue", "7", "8", "--max", "1"],
            "2 numbers are more than --max 1",
        ),
        (
            &["list", "--schema", "shop"],
            "--schema is for a store in PostgreSQL",
        ),
    ] {
        if says.contains("numbers are") {
            drop(SqliteEvents::open(&path).unwrap());
        }
        let ran = run(&store, args).await;
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
}
