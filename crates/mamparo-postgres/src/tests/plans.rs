use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use super::support::{connection, fresh, now, sql, waiting};
use crate::Postgres;
use crate::{events, forget, idempotency, limits, outbox, queue, read, write};

/// How the server does it, whatever the parameters.
async fn plan(connection: &mut PgConnection, statement: &str, parameters: usize) -> String {
    let statement = statement.replace("{keys}", "idempotency_keys");
    let statement = statement
        .replace("{events}", "events")
        .replace("{inbox}", "inbox");
    connection
        .execute(AssertSqlSafe(format!("PREPARE asked AS {statement}")))
        .await
        .unwrap();
    let nulls = vec!["NULL"; parameters].join(", ");
    let arguments = if parameters == 0 {
        String::new()
    } else {
        format!("({nulls})")
    };
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE asked{arguments}");
    let lines = connection.fetch_all(AssertSqlSafe(explain)).await.unwrap();
    connection.execute("DEALLOCATE asked").await.unwrap();
    let lines: Vec<String> = lines.iter().map(|line| line.get::<String, _>(0)).collect();
    lines.join("\n")
}

fn all() -> Vec<(&'static str, &'static str, usize)> {
    [
        &write::STATEMENTS[..],
        &idempotency::STATEMENTS,
        &events::STATEMENTS,
        &read::STATEMENTS,
        &queue::STATEMENTS,
        &outbox::STATEMENTS,
        &limits::STATEMENTS,
        &forget::STATEMENTS,
    ]
    .concat()
}

/// With rows that the server has counted, few enough for it to be tempted by plans for few.
async fn counted() -> Postgres {
    let postgres = fresh().await;
    waiting(
        &postgres,
        (0..500).map(|number| format!("t{number}")),
        now(),
    )
    .await;
    sql(&postgres, "ANALYZE").await;
    postgres
}

#[tokio::test]
async fn no_statement_reads_a_whole_table_or_depends_on_statistics() {
    let postgres = counted().await;
    let mut connection = connection(&postgres).await;
    for (name, statement, parameters) in all() {
        let plan = plan(&mut connection, statement, parameters).await;
        let scans: Vec<&str> = plan
            .lines()
            .filter(|line| line.contains("Seq Scan"))
            .collect();
        // The counts are all summed up, and few.
        let whole = scans.iter().any(|line| !line.contains(" on tally"));
        assert!(!whole, "{name} reads a whole table:\n{plan}");
        for bad in ["Hash Join", "Merge Join", "Hash Semi", "Gather"] {
            assert!(!plan.contains(bad), "{name} is planned by guesses:\n{plan}");
        }
    }
}

#[tokio::test]
async fn what_is_at_its_end_is_in_no_index_that_is_searched_for_what_is_not() {
    let postgres = counted().await;
    let mut connection = connection(&postgres).await;
    let uses = |name: &'static str| {
        all()
            .into_iter()
            .find(|(named, ..)| *named == name)
            .unwrap()
    };
    for (name, indexes) in [
        ("transit", &["transactions_pkey"][..]),
        ("take", &["messages_ready", "messages_pkey"]),
        (
            "take requests",
            &["messages_ready", "messages_pkey", "transactions_pkey"],
        ),
        ("next", &["messages_ready"]),
        ("stuck", &["transactions_since", "transactions_due"]),
        ("oldest", &["transactions_oldest"]),
        ("overdue", &["transactions_since", "transactions_due"]),
        ("postpone", &["messages_schedule"]),
        ("scheduled", &["messages_schedule"]),
        ("unschedule", &["messages_schedule"]),
        ("acknowledge", &["messages_pkey"]),
        ("read history", &["history_pkey"]),
        ("dead", &["dead_letters_queue"]),
        (
            "claim events",
            &["events_waiting", "events_keyless", "events_key"],
        ),
        ("backlog", &["events_waiting", "events_parked"]),
        ("parked events", &["events_parked"]),
        ("find key", &["idempotency_keys_pkey"]),
        ("complete key", &["idempotency_keys_pkey"]),
        ("sweep keys", &["idempotency_keys_expires_at"]),
    ] {
        let (_, statement, parameters) = uses(name);
        let plan = plan(&mut connection, statement, parameters).await;
        for index in indexes {
            assert!(plan.contains(index), "{name} does not use {index}:\n{plan}");
        }
        // Sorting is for what was found already; what is due first is taken in the index's order.
        assert!(
            !plan.contains("Bitmap"),
            "{name} looks at all that is due:\n{plan}"
        );
    }
}

/// A table that was vacuumed when it was empty counts as empty until the next time, whatever came since.
#[tokio::test]
async fn events_are_found_by_their_index_also_where_the_server_believes_that_there_are_none() {
    let postgres = fresh().await;
    let put = "INSERT INTO events (created_at, id, key, destination, routing_key, head, payload)
        SELECT 0, n, 'k' || n, '', '', '', '' FROM generate_series(1, 1000) n";
    for statement in [
        put,
        "DELETE FROM events",
        "VACUUM (TRUNCATE off, ANALYZE) events",
        put,
    ] {
        sql(&postgres, statement).await;
    }
    let mut connection = connection(&postgres).await;
    for (name, statement, parameters) in events::STATEMENTS {
        let plan = plan(&mut connection, statement, parameters).await;
        let whole = plan.contains("Join Filter") && !plan.contains("number = ANY");
        assert!(!whole, "{name} reads a whole table for each row:\n{plan}");
    }
    let (name, claim, parameters) = events::STATEMENTS[0];
    let plan = plan(&mut connection, claim, parameters).await;
    for order in ["<", ">"] {
        let keys = format!("ROW(key, number) {order} ROW(");
        assert!(plan.contains(&keys), "{name}:\n{plan}");
    }
    assert!(!plan.contains("Join Filter"), "{name}:\n{plan}");
}

/// Where the server knows of one dependency only, the index of all that is due is as good as its own.
#[tokio::test]
async fn what_is_due_for_one_of_many_dependencies_is_found_by_its_own_index() {
    let postgres = fresh().await;
    let mut connection = connection(&postgres).await;
    let (_, statement, parameters) = outbox::STATEMENTS[0];
    let plan = plan(&mut connection, statement, parameters).await;
    assert!(plan.contains("transactions_dependency"), "{plan}");
}

#[tokio::test]
async fn rows_are_locked_in_the_order_in_which_they_are_named() {
    let postgres = counted().await;
    let mut connection = connection(&postgres).await;
    for (name, statement, parameters) in write::STATEMENTS {
        if ![
            "transit",
            "acknowledge",
            "unschedule",
            "release",
            "extend",
            "bury",
        ]
        .contains(&name)
        {
            continue;
        }
        let plan = plan(&mut connection, statement, parameters).await;
        let loops = plan
            .lines()
            .skip_while(|line| !line.contains("Nested Loop"));
        let inner: Vec<&str> = loops.skip(1).take(2).map(str::trim).collect();
        assert!(
            inner[0].starts_with("->  Function Scan on"),
            "{name}:\n{plan}"
        );
        assert!(
            inner[1].starts_with("->  Index Scan using"),
            "{name}:\n{plan}"
        );
    }
}
