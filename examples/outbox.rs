//! Shows a saga that can't stick: events leave with their transaction, come twice and count once, and a watchdog cancels what waits.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_durable::backend::BoxFuture;
use mamparo_durable::events::{
    Event, EventStore as _, Published, Publisher, Relay, Seen, Watchdog,
};
use mamparo_durable::supervise::Supervisor;
use mamparo_sqlite::{SqliteEvents, TransactionError};

/// Stands for the broker and the stock service behind it: each message comes twice, as brokers do.
#[derive(Debug)]
struct Stock(SqliteEvents);

impl Stock {
    async fn hear(&self, event: &Event) -> Result<(), TransactionError> {
        let (inbox, event) = (self.0.clone(), event.clone());
        let heard = self.0.transaction(move |tx| {
            let seen = inbox.processed_once(tx, "stock", event.id())?;
            let change = match event.routing_key() {
                "order.placed" => -1,
                _ => 1,
            };
            if seen == Seen::First {
                tx.execute("UPDATE stock SET free = free + ?1", [change])?;
            }
            println!("stock hears {}: {seen:?}", event.id());
            Ok(())
        });
        heard.await
    }
}

impl Publisher for Stock {
    fn publish<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Published> {
        Box::pin(async move {
            match self.hear(event).await.and(self.hear(event).await) {
                Ok(()) => Published::Confirmed,
                Err(error) => Published::NotNow(error.to_string()),
            }
        })
    }
}

fn told(order: &str, what: &str) -> Result<Event, TransactionError> {
    let event = Event::builder(format!("{order}/{what}")).key(order);
    let event = event.to("orders", format!("order.{what}")).build();
    event.map_err(TransactionError::work)
}

/// The order and its event, both or neither.
async fn place(shop: &SqliteEvents, order: &'static str) -> Result<(), TransactionError> {
    let outbox = shop.clone();
    let placed = shop.transaction(move |tx| {
        tx.execute("INSERT INTO orders VALUES (?1, 'PENDING')", [order])?;
        outbox.put(tx, &told(order, "placed")?)
    });
    placed.await
}

async fn free(shop: &SqliteEvents) -> Result<i64, TransactionError> {
    let free = shop.transaction(|tx| {
        let free = tx.query_row("SELECT free FROM stock", [], |row| row.get(0))?;
        Ok::<i64, TransactionError>(free)
    });
    free.await
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let shop = SqliteEvents::open(folder.path().join("shop.db"))?;
    let tables = "CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT); CREATE TABLE stock AS SELECT 10 AS free";
    let made = shop.transaction(|tx| Ok::<_, TransactionError>(tx.execute_batch(tables)?));
    made.await?;
    let relay = Relay::builder(
        "orders",
        Arc::new(shop.clone()),
        Arc::new(Stock(shop.clone())),
    );
    let running = Supervisor::new().worker(relay.build()?).run();

    for order in ["order-1", "order-2", "order-3"] {
        place(&shop, order).await?;
    }
    if let Err(error) = place(&shop, "order-3").await {
        println!("order-3 again: {error}; no event either");
    }
    while shop.backlog().await?.waiting > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("free: {}", free(&shop).await?);

    // No payment ever comes. A real statement also asks since when: `AND since < unixepoch() - 600`.
    let pending = "SELECT id FROM orders WHERE state = 'PENDING' LIMIT ?1";
    let stuck = shop.stuck(pending, |tx, order| {
        tx.execute(
            "UPDATE orders SET state = 'CANCELLED' WHERE id = ?1",
            [order],
        )?;
        Ok(vec![told(order, "cancelled")?])
    });
    let watchdog = Watchdog::builder("payment-timeout", stuck).build()?;
    let watching = Supervisor::new().worker(watchdog).run();
    while free(&shop).await? < 10 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("free: {}", free(&shop).await?);
    watching.stop().await?;
    running.stop().await?;
    Ok(())
}
