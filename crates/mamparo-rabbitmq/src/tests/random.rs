//! Many messages with random fates, and a broker that is killed under them.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use lapin::Channel;
use mamparo_core::BoxError;
use mamparo_testkit::private::PrivateRabbit;
use tower::service_fn;

use super::support::{Handler, PATIENCE, Running, take};
use crate::link::open;
use crate::message::header;
use crate::topology::peek;
use crate::{Consumer, Delivery, Message, Permanent, Publisher, Settings, Topology, headers};

/// As many are published at once.
const BATCH: u64 = 100;

/// A queue that was declared is on the broker's disk after so long: killed before, it may come back with no leader.
const ON_DISK: Duration = Duration::from_secs(5);

fn set<T: FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}

/// How often each message was handled to its end.
type Tally = Arc<Mutex<HashMap<u64, u32>>>;

/// The messages, and what becomes of each: some succeed at once, some after failures, some never, some are poison.
#[derive(Clone, Copy, Debug)]
struct Fates {
    seed: u64,
    count: u64,
}

impl Fates {
    fn of(self, number: u64, attempt: u32) -> Result<(), BoxError> {
        let mut rng =
            fastrand::Rng::with_seed(self.seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        match rng.u32(0..100) {
            0..3 => Err(Permanent::new("poison").into()),
            3..5 => Err("never".into()),
            5..15 if attempt <= rng.u32(1..4) => Err("not yet".into()),
            _ => Ok(()),
        }
    }

    fn dying(self) -> Vec<u64> {
        let dies = |number: &u64| (1..=5).all(|attempt| self.of(*number, attempt).is_err());
        (0..self.count).filter(dies).collect()
    }

    fn handler(self, done: &Tally) -> impl Handler + use<> {
        let done = Arc::clone(done);
        service_fn(move |delivery: Delivery| {
            let done = Arc::clone(&done);
            async move {
                let number = std::str::from_utf8(delivery.body())?.parse()?;
                self.of(number, delivery.attempt())?;
                *done.lock().unwrap().entry(number).or_default() += 1;
                Ok(())
            }
        })
    }

    /// Publishes all of them, some at once.
    async fn publish(self, publisher: Publisher, queue: String) {
        for first in (0..self.count).step_by(BATCH as usize) {
            let numbers = first..self.count.min(first + BATCH);
            let sent = numbers
                .map(|number| publisher.publish("", &queue, Message::new(number.to_string())));
            for sent in join_all(sent).await {
                sent.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Takes dead letters until all of these were among them, and returns those that should not be.
async fn dead_but_for(channel: &Channel, queue: &str, mut dying: Vec<u64>) -> Vec<u64> {
    let expected = dying.clone();
    let mut others = Vec::new();
    while !dying.is_empty() || peek(channel, queue).await.unwrap() != Some(0) {
        let (properties, body) = take(channel, queue).await;
        assert!(header(&properties, headers::DEAD_REASON).is_some());
        let number = std::str::from_utf8(&body).unwrap().parse().unwrap();
        dying.retain(|dying| *dying != number);
        if !expected.contains(&number) {
            others.push(number);
        }
    }
    others
}

/// `MAMPARO_MESSAGES` sets how many, `MAMPARO_SEED` which.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_twice_loses_nothing() {
    let seed = set("MAMPARO_SEED").unwrap_or_else(|| fastrand::u64(..));
    let count = set("MAMPARO_MESSAGES").unwrap_or(2_000);
    println!("MAMPARO_SEED={seed} MAMPARO_MESSAGES={count}");
    let (fates, done) = (Fates { seed, count }, Tally::default());
    let server = PrivateRabbit::start().await;
    let delay = Duration::from_millis(200);
    let topology = Topology::builder("q").delay(delay).build().unwrap();
    let patient = Settings::builder(server.url())
        .publish_timeout(3 * PATIENCE)
        .build()
        .unwrap();
    let consumer = Consumer::builder(patient.clone(), topology.clone())
        .prefetch(50)
        .build()
        .unwrap();
    let running = Running::start(consumer, fates.handler(&done));
    running.status.ready().await;
    tokio::time::sleep(ON_DISK).await;
    let publishing = tokio::spawn(fates.publish(Publisher::new(patient.clone()), "q".to_owned()));
    for _ in 0..2 {
        running.status.ready().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.kill().await;
        server.restart().await;
    }
    publishing.await.unwrap();
    let dying = fates.dying();
    let living = count as usize - dying.len();
    let handled = || done.lock().unwrap().len();
    let all = tokio::time::timeout(PATIENCE + Duration::from_millis(5 * count), async {
        while handled() < living {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(all.await.is_ok(), "{} of {living} were handled", handled());
    let live = open(&patient).await.unwrap();
    let dead = dying.len();
    assert_eq!(
        dead_but_for(&live.channel, "q.dlq", dying).await,
        Vec::<u64>::new(),
        "dead, but fit to live"
    );
    running.stop().await;
    for queue in ["q", "q.retry"] {
        assert_eq!(
            peek(&live.channel, queue).await.unwrap(),
            Some(0),
            "{queue}"
        );
    }
    let twice = done
        .lock()
        .unwrap()
        .values()
        .filter(|&&times| times > 1)
        .count();
    println!("{count} messages: {dead} dead, {twice} handled more than once");
}
