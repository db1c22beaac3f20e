//! The database: no connection left for requests, and transactions that are undone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mamparo_core::BoxError;
use mamparo_postgres::sqlx;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::gameday::customers::{Answer, Customers, Statuses};
use crate::gameday::day::Day;

const ORDERS: usize = 5;

/// More than there are connections, so that one is always waited for.
const CROWD: usize = 60;

const TOLD: &str =
    "SELECT count(*) FROM notifications.sent WHERE what = 'order.confirmed' AND order_id > $1";
const WAITING: &str =
    "SELECT count(*) FROM orders.orders WHERE state = 'STOCK_RESERVED' AND id > $1";
const LOCK: &str = "SELECT id FROM orders.orders WHERE id = $1 FOR UPDATE";

const PUBLISHED: &str = "mamparo_outbox_published_events_total";
const RETRIED: &str = r#"shop_messages_total{queue="payments.stock",settled="retry"}"#;

pub(super) async fn pool_full(day: &mut Day) -> Result<(), BoxError> {
    let held = day.customers.order(&Customers::somebody(), "book").await?;
    day.customers.outcome(std::slice::from_ref(&held)).await?;
    let held = held.order().ok_or("no order was taken")?;
    let before = day.ledger.count(TOLD, "").await?;
    // These are under way when it happens.
    day.misbehave("bank", "latency_ms=4000").await?;
    let answers = day.customers.crowd(ORDERS).await?;
    let wanted = i64::try_from(ORDERS)?;
    day.ledger.until(WAITING, "", wanted).await?;

    // Somebody at a console locks a row that everybody wants.
    let mut console = day.ledger.pool().begin().await?;
    sqlx::query(LOCK).bind(&held).execute(&mut *console).await?;
    let crowd = Crowd::begin(&day.customers, &held);
    sleep(day.settings.database.request_wait).await;
    let published = day.operators.read("orders", PUBLISHED).await;
    let told = day.ledger.until(TOLD, "", before + wanted).await? - before;
    let published = day.operators.read("orders", PUBLISHED).await - published;
    let mut asked = Vec::new();
    for _ in 0..5 {
        asked.push(day.customers.get(&format!("/orders/{held}")).await?);
    }
    console.rollback().await?;
    day.misbehave("bank", "latency_ms=0").await?;
    crowd.end().await;

    let is_refused = |answer: &&Answer| answer.status == 503 && answer.retry_after.is_some();
    let refused = asked.iter().filter(is_refused).count();
    day.table.customers(
        "who asks finds no connection: 503, Retry-After",
        Statuses(&asked),
        refused > 0,
    );
    let seen = format!("{told} of {ORDERS} confirmed and told meanwhile");
    day.table
        .customers("sagas that had begun go on", seen, told == wanted);
    day.table.operators(
        "the relay still moves",
        format!("{published} events"),
        published >= 5.0,
    );
    day.confirmed("once the lock is gone, all is well", &answers)
        .await?;
    day.followed(&answers).await
}

/// Customers who all want to cancel one order, whatever they are told.
struct Crowd {
    asking: JoinSet<()>,
    goes_on: Arc<AtomicBool>,
}

impl Crowd {
    fn begin(customers: &Customers, order: &str) -> Self {
        let goes_on = Arc::new(AtomicBool::new(true));
        let mut asking = JoinSet::new();
        for _ in 0..CROWD {
            let (customers, goes_on) = (customers.clone(), Arc::clone(&goes_on));
            let order = order.to_owned();
            asking.spawn(async move {
                while goes_on.load(Relaxed) {
                    drop(customers.cancel(&order).await);
                }
            });
        }
        Self { asking, goes_on }
    }

    async fn end(self) {
        self.goes_on.store(false, Relaxed);
        self.asking.join_all().await;
    }
}

pub(super) async fn deadlock(day: &mut Day) -> Result<(), BoxError> {
    let before = day.operators.read("payments", RETRIED).await;
    day.ledger
        .run("CREATE SEQUENCE payments.undone;
              CREATE FUNCTION payments.undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                  IF nextval('payments.undone') <= 2 THEN
                      RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01';
                  END IF;
                  RETURN NEW;
              END $$;
              CREATE TRIGGER undo BEFORE UPDATE ON payments.charges FOR EACH ROW EXECUTE FUNCTION payments.undo()")
        .await?;
    let answer = day.customers.order(&Customers::somebody(), "book").await?;
    let order = answer.order().ok_or("no order was taken")?;
    day.confirmed("the order is confirmed", &[answer]).await?;
    day.ledger
        .run("DROP TRIGGER undo ON payments.charges; DROP FUNCTION payments.undo; DROP SEQUENCE payments.undone")
        .await?;
    let deadlocks = day.operators.read("payments", "shop_deadlocks_total").await;
    let retried = day.operators.read("payments", RETRIED).await - before;
    let seen = format!("{deadlocks} deadlocks, {retried} messages to the retry queue");
    let holds = deadlocks >= 2.0 && retried == 0.0;
    day.table.operators(
        "40P01 is tried again in the process, 50 ms apart",
        seen,
        holds,
    );

    let spans = day.traces.of(&order)?;
    let messages = spans
        .iter()
        .filter(|span| span.is_process_of("payments.stock"));
    let attempts = messages.count();
    day.table.traces(
        "for the message it is one attempt",
        format!("{attempts} attempt"),
        attempts == 1,
    );
    Ok(())
}
