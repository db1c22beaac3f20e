//! A saga over PostgreSQL and RabbitMQ, with real ones: a relay that is killed, deliveries that come twice, orders that wait for ever.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_durable::events::{Event, EventStore as _, Relay, Seen, Watchdog};
use mamparo_durable::supervise::{Supervised, Supervisor};
use mamparo_postgres::sqlx::{self, PgPool};
use mamparo_postgres::{PostgresEvents, Settings};
use mamparo_rabbitmq::{Consumer, Delivery, Message, Publisher, Topology};
use mamparo_testkit::private::{PrivatePostgres, PrivateRabbit};
use tower::service_fn;

const ORDERS: i64 = 200;

/// The orders' service and the stock's, on one server for brevity.
#[derive(Clone, Debug)]
struct Shop {
    pool: PgPool,
    events: PostgresEvents,
    publisher: Publisher,
    queue: String,
}

impl Shop {
    async fn open(
        postgres: &PrivatePostgres,
        rabbit: mamparo_rabbitmq::Settings,
    ) -> (Self, Topology) {
        let pool = PgPool::connect(&postgres.url()).await.unwrap();
        for table in [
            "orders (id text PRIMARY KEY, state text NOT NULL DEFAULT 'PENDING')",
            "stock (order_id text PRIMARY KEY, reserved bigint NOT NULL, changes bigint NOT NULL DEFAULT 1)",
        ] {
            let made = format!("CREATE TABLE {table}");
            sqlx::query(sqlx::AssertSqlSafe(made))
                .execute(&pool)
                .await
                .unwrap();
        }
        let settings = Settings::builder(postgres.url()).build().unwrap();
        let topology = Topology::builder("stock").build().unwrap();
        let publisher = Publisher::new(rabbit);
        publisher.declare(&topology).await.unwrap();
        let shop = Self {
            pool,
            events: PostgresEvents::connect(settings).await.unwrap(),
            publisher,
            queue: topology.queue().to_owned(),
        };
        (shop, topology)
    }

    /// The order and its event in one transaction.
    async fn place(&self, order: &str) {
        let mut tx = self.pool.begin().await.unwrap();
        let insert = sqlx::query("INSERT INTO orders (id) VALUES ($1)").bind(order);
        insert.execute(&mut *tx).await.unwrap();
        let placed = told(&self.queue, order, "placed").unwrap();
        self.events.put(&mut tx, &placed).await.unwrap();
        tx.commit().await.unwrap();
    }

    fn relay(&self) -> Supervised {
        let (store, publisher) = (
            Arc::new(self.events.clone()),
            Arc::new(self.publisher.clone()),
        );
        let relay = Relay::builder("orders", store, publisher)
            .batch(20)
            .lease(Duration::from_secs(2))
            .publish_timeout(Duration::from_secs(1));
        Supervisor::new().worker(relay.build().unwrap()).run()
    }

    /// Reserves once, releases once.
    async fn hear(self, delivery: Delivery) -> Result<(), BoxError> {
        let id = delivery.message_id().ok_or("no id")?;
        let (order, what) = id.split_once('/').ok_or("no order")?;
        let mut tx = self.pool.begin().await?;
        if self.events.processed_once(&mut tx, "stock", id).await? == Seen::First {
            let change = match what {
                "placed" => "INSERT INTO stock (order_id, reserved) VALUES ($1, 1)",
                _ => {
                    "UPDATE stock SET reserved = reserved - 1, changes = changes + 1 WHERE order_id = $1"
                }
            };
            sqlx::query(change).bind(order).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Orders whose stock changed so often, and what is reserved of all.
    async fn stock(&self, changes: i64) -> (i64, i64) {
        let asked = "SELECT count(*) FILTER (WHERE changes = $1), coalesce(sum(reserved), 0)::bigint FROM stock";
        sqlx::query_as(asked)
            .bind(changes)
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    async fn until_stock_is(&self, changes: i64, expected: (i64, i64)) {
        for _ in 0..1_200 {
            if self.stock(changes).await == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{:?} instead of {expected:?}", self.stock(changes).await);
    }

    /// Every order that is pending counts as stuck.
    fn watchdog(&self) -> Supervised {
        let stuck = "SELECT id FROM orders WHERE state = 'PENDING' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED";
        let queue = self.queue.clone();
        let stuck = self.events.stuck(stuck, move |tx, order| {
            let cancelled = told(&queue, &order, "cancelled");
            Box::pin(async move {
                let cancel = sqlx::query("UPDATE orders SET state = 'CANCELLED' WHERE id = $1");
                cancel.bind(&order).execute(tx).await?;
                Ok(vec![cancelled?])
            })
        });
        let watchdog = Watchdog::builder("payment-timeout", stuck).limit(30);
        Supervisor::new().worker(watchdog.build().unwrap()).run()
    }
}

fn told(queue: &str, order: &str, what: &str) -> Result<Event, mamparo_core::InvalidSetting> {
    Event::builder(format!("{order}/{what}"))
        .key(order)
        .to("", queue)
        .build()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stuck_orders_are_cancelled_once_and_their_stock_is_released_whatever_comes_twice() {
    let (postgres, rabbit) = (PrivatePostgres::start().await, PrivateRabbit::start().await);
    let settings = mamparo_rabbitmq::Settings::builder(rabbit.url());
    let settings = settings
        .connect_timeout(Duration::from_secs(20))
        .build()
        .unwrap();
    let (shop, topology) = Shop::open(&postgres, settings.clone()).await;
    let consumer = Consumer::builder(settings, topology).build().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let hears = shop.clone();
    let service = service_fn(move |delivery| hears.clone().hear(delivery));
    let consuming = tokio::spawn(consumer.run(service, async {
        drop(stopped.await);
    }));

    // Killed again and again: what it had claimed comes after its lease.
    let mut relay = shop.relay();
    for number in 0..ORDERS {
        shop.place(&format!("order-{number}")).await;
        if number % 60 == 59 {
            relay = shop.relay();
        }
    }
    shop.until_stock_is(1, (ORDERS, ORDERS)).await;

    let watchdogs = [shop.watchdog(), shop.watchdog()];
    shop.until_stock_is(2, (ORDERS, 0)).await;

    for watchdog in watchdogs {
        watchdog.stop().await.unwrap();
    }

    // What a person sends again from the dead letters, hours later.
    for what in ["placed", "cancelled"] {
        let late = Message::new("").id(&format!("order-7/{what}"));
        shop.publisher.publish("", &shop.queue, late).await.unwrap();
    }
    shop.place("last").await;
    shop.until_stock_is(2, (ORDERS, 1)).await;
    relay.stop().await.unwrap();
    let backlog = shop.events.backlog().await.unwrap();
    assert_eq!((backlog.waiting, backlog.parked), (0, 0));
    stop.send(()).unwrap();
    consuming.await.unwrap().unwrap();
}
