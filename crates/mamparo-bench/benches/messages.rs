//! What a consumer, and a relay, cost over RabbitMQ beside bare ones, in pairs; and the memory of a consumer that goes on.
//!
//! `cargo bench -p mamparo-bench --bench messages`; `MAMPARO_BENCH_MESSAGES=20000` for how many each run takes,
//! `MAMPARO_BENCH_PAIRS=7` for how many pairs, and `MAMPARO_BENCH_LONG=1000000` for how many the last run takes.
//!
//! A private RabbitMQ and a private PostgreSQL are started for it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures"
)]

#[path = "report/program.rs"]
mod program;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, FuturesUnordered};
use mamparo_core::{BoxError, clock};
use mamparo_durable::events::{Event, Relay};
use mamparo_durable::handler::Listener;
use mamparo_durable::supervise::Supervisor;
use mamparo_postgres::sqlx::PgPool;
use mamparo_postgres::{PostgresEvents, Settings as Database};
use mamparo_rabbitmq::lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions,
};
use mamparo_rabbitmq::lapin::types::FieldTable;
use mamparo_rabbitmq::lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use mamparo_rabbitmq::{Consumer, Delivery, Message, Publisher, Settings, Topology};
use mamparo_testkit::private::{PrivatePostgres, PrivateRabbit};
use tokio::sync::oneshot;
use tower::service_fn;

use program::{runtime, size};

/// As many as are taken before the first is settled: by default, and where the broker is no longer waited for.
const PREFETCHES: [u16; 2] = [10, 256];
/// As many as are under way unconfirmed: what a relay claims at once.
const WINDOW: usize = 256;
const BODY: [u8; 512] = [b'x'; 512];
const POLL: Duration = Duration::from_millis(1);

fn main() {
    let runtime = runtime();
    runtime.block_on(async {
        let bench = Bench::open().await;
        let (messages, pairs) = (size("MESSAGES", 20_000), size("PAIRS", 7));
        for prefetch in PREFETCHES {
            let name = format!("consumer, prefetch {prefetch}");
            paired(&name, pairs, messages, async |ours| {
                bench.fill(messages).await;
                match ours {
                    true => bench.consume(messages, prefetch).await,
                    false => bench.consume_barely(messages, prefetch).await,
                }
            })
            .await;
        }
        paired("relay", pairs, messages, async |ours| {
            let took = match ours {
                true => bench.relay(messages).await,
                false => bench.publish_barely(messages).await,
            };
            bench.consume_barely(messages, WINDOW as u16).await;
            took
        })
        .await;
        bench.memory(size("LONG", 1_000_000)).await;
    });
}

/// Runs ours and the bare one in turn, who begins changing each time, and prints what they did and the median of the ratios.
async fn paired(name: &str, pairs: usize, messages: usize, run: impl AsyncFn(bool) -> Duration) {
    let rate = |took: Duration| messages as f64 / took.as_secs_f64();
    let mut ratios = Vec::new();
    for pair in 0..pairs {
        let ours_first = pair % 2 == 0;
        let (one, other) = (run(ours_first).await, run(!ours_first).await);
        let (ours, bare) = if ours_first {
            (one, other)
        } else {
            (other, one)
        };
        let ratio = rate(ours) / rate(bare);
        println!(
            "{name}: ours {:.0}/s, bare {:.0}/s, {:.1} %",
            rate(ours),
            rate(bare),
            ratio * 100.0
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
    println!("{name}: median {:.1} % of the bare one", median * 100.0);
}

struct Bench {
    rabbit: PrivateRabbit,
    settings: Settings,
    topology: Topology,
    publisher: Publisher,
    pool: PgPool,
    events: PostgresEvents,
    _postgres: PrivatePostgres,
}

impl Bench {
    async fn open() -> Self {
        let (rabbit, postgres) = (
            PrivateRabbit::start().await,
            PrivatePostgres::durable().await,
        );
        let settings = Settings::builder(rabbit.url()).unconfirmed(WINDOW);
        let settings = settings.connect_timeout(Duration::from_secs(20));
        let settings = settings.build().unwrap();
        let topology = Topology::builder("orders").build().unwrap();
        let publisher = Publisher::new(settings.clone());
        publisher.declare(&topology).await.unwrap();
        let database = Database::builder(postgres.url()).build().unwrap();
        Self {
            rabbit,
            settings,
            topology,
            publisher,
            pool: PgPool::connect(&postgres.url()).await.unwrap(),
            events: PostgresEvents::connect(database).await.unwrap(),
            _postgres: postgres,
        }
    }

    async fn channel(&self) -> (Connection, Channel) {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(&self.rabbit.url(), properties).await;
        let connection = connection.unwrap();
        let channel = connection.create_channel().await.unwrap();
        (connection, channel)
    }

    async fn fill(&self, messages: usize) {
        let published = stream::iter(0..messages).for_each_concurrent(WINDOW, async |_| {
            let message = Message::new(&BODY[..]);
            let published = self.publisher.publish("", self.topology.queue(), message);
            published.await.unwrap();
        });
        published.await;
    }

    /// Takes so many, and returns how long that took from the start of the consumer, its connection included.
    async fn consume(&self, messages: usize, prefetch: u16) -> Duration {
        let handled = Arc::new(AtomicUsize::new(0));
        let consumer = Consumer::builder(self.settings.clone(), self.topology.clone());
        let consumer = consumer.prefetch(prefetch).build().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let counted = Arc::clone(&handled);
        let service = service_fn(move |_: Delivery| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok::<_, BoxError>(()))
        });
        let began = clock::now();
        let running = tokio::spawn(consumer.run(service, async {
            drop(stopped.await);
        }));
        until(&handled, messages).await;
        let took = began.elapsed();
        stop.send(()).unwrap();
        running.await.unwrap().unwrap();
        took
    }

    async fn consume_barely(&self, messages: usize, prefetch: u16) -> Duration {
        let began = clock::now();
        let (connection, channel) = self.channel().await;
        let limited = channel.basic_qos(prefetch, BasicQosOptions::default());
        limited.await.unwrap();
        let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
        let consumer =
            channel.basic_consume(self.topology.queue().into(), "".into(), options, arguments);
        let mut consumer = consumer.await.unwrap();
        for _ in 0..messages {
            let delivery = consumer.next().await.unwrap().unwrap();
            delivery.ack(BasicAckOptions::default()).await.unwrap();
        }
        let took = began.elapsed();
        connection.close(200, "done".into()).await.unwrap();
        took
    }

    /// Publishes so many events that were put before.
    async fn relay(&self, messages: usize) -> Duration {
        let queue = self.topology.queue();
        let mut transaction = self.pool.begin().await.unwrap();
        for number in 0..messages {
            let event = Event::builder(format!("{number}")).to("", queue);
            let event = event.payload(&BODY[..]).build().unwrap();
            self.events.put(&mut transaction, &event).await.unwrap();
        }
        transaction.commit().await.unwrap();
        let (store, publisher) = (
            Arc::new(self.events.clone()),
            Arc::new(self.publisher.clone()),
        );
        let relay = Relay::builder("orders", store, publisher).build().unwrap();
        let told = Arc::new(Told::default());
        let began = clock::now();
        let relay = Supervisor::new().worker(relay).listener(told.clone());
        let relay = relay.run();
        until(&told.0, messages).await;
        let took = began.elapsed();
        relay.stop().await.unwrap();
        took
    }

    /// As many under way as a relay has.
    async fn publish_barely(&self, messages: usize) -> Duration {
        let began = clock::now();
        let (connection, channel) = self.channel().await;
        let confirms = channel.confirm_select(ConfirmSelectOptions::default());
        confirms.await.unwrap();
        let mut unconfirmed = FuturesUnordered::new();
        for _ in 0..messages {
            if unconfirmed.len() >= WINDOW {
                unconfirmed.next().await;
            }
            let sent = channel.basic_publish(
                "".into(),
                self.topology.queue().into(),
                BasicPublishOptions::default(),
                &BODY,
                BasicProperties::default().with_delivery_mode(2),
            );
            unconfirmed.push(sent.await.unwrap());
        }
        while unconfirmed.next().await.is_some() {}
        let took = began.elapsed();
        connection.close(200, "done".into()).await.unwrap();
        took
    }

    /// Publishes and consumes side by side, and prints the memory of this process after each tenth.
    async fn memory(&self, messages: usize) {
        let tenth = (messages / 10).max(1);
        let mut resident = Vec::new();
        for part in 1..=10 {
            tokio::join!(self.fill(tenth), self.consume(tenth, PREFETCHES[0]));
            resident.push(resident_kib());
            println!("memory after {}: {} KiB", part * tenth, resident[part - 1]);
        }
        // The first tenth fills pools and caches.
        let grown = resident[9] as f64 - resident[0] as f64;
        println!("memory: {grown:+.0} KiB from the first tenth to the last");
    }
}

/// How many a relay has told that it published.
#[derive(Debug, Default)]
struct Told(AtomicUsize);

impl Listener for Told {
    fn published(&self, _: &str, events: u64) {
        let events = usize::try_from(events).unwrap_or(usize::MAX);
        self.0.fetch_add(events, Ordering::Relaxed);
    }
}

async fn until(handled: &AtomicUsize, messages: usize) {
    while handled.load(Ordering::Relaxed) < messages {
        tokio::time::sleep(POLL).await;
    }
}

/// What Linux says; 0 elsewhere.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    kib.and_then(|kib| kib.parse().ok()).unwrap_or_default()
}
