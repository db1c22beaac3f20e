//! Many messages with random fates, consumers that are killed at random instants, and a broker that dies and stops meanwhile.

use std::collections::{HashMap, HashSet};
use std::env;
use std::path::Path;
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use mamparo_core::{BoxError, clock};
use mamparo_durable::events::Seen;
use mamparo_rabbitmq::{
    Consumer, DeadLetters, Delivery, Letter, Message, Permanent, Publisher, Selection, Settings,
    Topology,
};
use mamparo_sqlite::{SqliteEvents, TransactionError};
use mamparo_testkit::private::PrivateRabbit;
use tempfile::TempDir;
use tokio::process::Child;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tower::service_fn;

use crate::own_process::{self, Said};

const URL: &str = "MAMPARO_TEST_BROKER";
const FOLDER: &str = "MAMPARO_TEST_FOLDER";
const SEED: &str = "MAMPARO_SEED";
const MESSAGES: &str = "MAMPARO_MESSAGES";

/// What a consumer says once it takes messages.
const TAKES: &str = "takes messages";

/// As many are published at once, and then none for a moment.
const BATCH: usize = 20;

/// The wait before a message is tried again.
const DELAY: Duration = millis(200);

/// As many dead letters are looked at, at most.
const MOST: usize = 10_000;

/// As long as anything is waited for that must happen, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A queue that was declared is on the broker's disk after so long: killed before, it may come back with no leader.
const ON_DISK: Duration = Duration::from_secs(5);

fn set<T: FromStr>(variable: &str) -> Option<T> {
    env::var(variable).ok()?.parse().ok()
}

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn topology() -> Topology {
    Topology::builder("q").delay(DELAY).build().unwrap()
}

fn settings(url: &str) -> Settings {
    let settings = Settings::builder(url).publish_timeout(2 * PATIENCE);
    settings.build().unwrap()
}

/// What is known beforehand of each message: some succeed at once, some after failures, some never, some are poison.
#[derive(Clone, Copy, Debug)]
struct Fates {
    seed: u64,
    count: u32,
}

impl Fates {
    fn of(self, number: u32, attempt: u32) -> Result<(), BoxError> {
        let own = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut rng = Rng::with_seed(self.seed ^ own);
        match rng.u32(0..100) {
            0..3 => Err(Permanent::new("poison").into()),
            3..5 => Err("never".into()),
            5..15 if attempt <= rng.u32(1..4) => Err("not yet".into()),
            _ => Ok(()),
        }
    }

    /// Those that must end as dead letters, each with its reason and what its last attempt said.
    fn dying(self) -> HashMap<u32, (&'static str, &'static str)> {
        let why = |number| {
            if self.of(number, 1).err()?.is::<Permanent>() {
                return Some((number, ("permanent", "poison")));
            }
            self.of(number, 5).err()?;
            Some((number, ("exhausted", "never")))
        };
        (0..self.count).filter_map(why).collect()
    }

    /// Publishes all of them, some at once.
    async fn publish(self, publisher: Publisher) {
        let numbers: Vec<u32> = (0..self.count).collect();
        for batch in numbers.chunks(BATCH) {
            let sent = batch.iter().map(|number| {
                let message = Message::new(number.to_string()).id(&format!("m{number}"));
                publisher.publish("", "q", message)
            });
            for sent in join_all(sent).await {
                sent.unwrap();
            }
            sleep(millis(20)).await;
        }
    }
}

/// The consumer's database: its inbox, and what its messages have done.
#[derive(Clone)]
struct Books(SqliteEvents);

/// What the books say.
#[derive(Debug, PartialEq, Eq)]
struct Sums {
    /// Messages that had their effect.
    effects: u32,
    /// Different ones among them.
    numbers: u32,
    /// Messages in the inbox.
    inbox: u32,
}

impl Books {
    fn open(folder: &Path) -> Self {
        Self(SqliteEvents::open(folder.join("books.db")).unwrap())
    }

    async fn prepare(&self) {
        let made = self.0.transaction(|tx| {
            tx.execute_batch(
                "CREATE TABLE effects (number INTEGER); CREATE TABLE again (number INTEGER)",
            )?;
            Ok::<_, TransactionError>(())
        });
        made.await.unwrap();
    }

    /// The effect of a message, with the inbox's note of it.
    async fn enter(self, number: u32, id: String) -> Result<(), TransactionError> {
        let inbox = self.0.clone();
        let entered = self.0.transaction(move |tx| {
            let first = inbox.processed_once(tx, "test", &id)? == Seen::First;
            let table = if first { "effects" } else { "again" };
            tx.execute(&format!("INSERT INTO {table} VALUES (?1)"), [number])?;
            Ok(())
        });
        entered.await
    }

    async fn count(&self, what: &'static str) -> u32 {
        let counted = self.0.transaction(move |tx| {
            let count = tx.query_row(&format!("SELECT {what}"), [], |row| row.get(0))?;
            Ok::<_, TransactionError>(count)
        });
        counted.await.unwrap()
    }

    /// How many had their effect, for whoever asks often.
    async fn done(&self) -> u32 {
        self.count("coalesce(max(rowid), 0) FROM effects").await
    }

    async fn sums(&self) -> Sums {
        Sums {
            effects: self.count("count(*) FROM effects").await,
            numbers: self.count("count(DISTINCT number) FROM effects").await,
            inbox: self.count("count(*) FROM mamparo_inbox").await,
        }
    }

    /// Tells whether a message had its effect.
    async fn has(&self, number: u32) -> bool {
        let found = self.0.transaction(move |tx| {
            let question = "SELECT EXISTS (SELECT 1 FROM effects WHERE number = ?1)";
            Ok::<_, TransactionError>(tx.query_row(question, [number], |row| row.get(0))?)
        });
        found.await.unwrap()
    }
}

/// A consumer in a process of its own; it ends with its owner.
struct Process {
    child: Child,
    said: Said,
}

impl Process {
    async fn start(url: &str, folder: &Path, fates: Fates) -> Self {
        let mut child = own_process::command("consuming::consumes")
            .env(URL, url)
            .env(FOLDER, folder)
            .env(SEED, fates.seed.to_string())
            .env(MESSAGES, fates.count.to_string())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = Said::by(&mut child);
        said.after(TAKES).await;
        Self { child, said }
    }

    /// Ends it as a crash does (`kill -9`), and waits until it is gone.
    async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Lets it end what it has in hand.
    async fn stop(&mut self) {
        drop(self.child.stdin.take());
        self.said.after("test result: ok").await;
        assert!(self.child.wait().await.unwrap().success());
    }
}

/// The consumer's own process; started by the test around.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "is run by another test"]
async fn consumes() {
    let Ok(url) = env::var(URL) else { return };
    let books = Books::open(Path::new(&env::var(FOLDER).unwrap()));
    let fates = Fates {
        seed: set(SEED).unwrap(),
        count: set(MESSAGES).unwrap(),
    };
    let handler = service_fn(move |delivery: Delivery| {
        let books = books.clone();
        async move {
            let number = std::str::from_utf8(delivery.body())?.parse()?;
            fates.of(number, delivery.attempt())?;
            let id = delivery.message_id().ok_or("no id")?.to_owned();
            books.enter(number, id).await?;
            // Killed here, it has had its effect and comes again.
            sleep(millis(10)).await;
            Ok::<_, BoxError>(())
        }
    });
    let consumer = Consumer::builder(settings(&url), topology()).prefetch(50);
    let consumer = consumer.build().unwrap();
    let status = consumer.status();
    tokio::spawn(async move {
        status.ready().await;
        println!("\n{TAKES}");
    });
    let owned = spawn_blocking(|| std::io::stdin().lines().next().is_none());
    consumer
        .run(handler, async { drop(owned.await) })
        .await
        .unwrap();
}

/// What happens on the way.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    ConsumerDies,
    BrokerDies,
    BrokerStops,
}

/// Each trouble, and once how many messages had their effect.
fn troubles(rng: &mut Rng, kills: usize, restarts: usize, living: u32) -> Vec<(u32, Trouble)> {
    let broker = [Trouble::BrokerDies, Trouble::BrokerStops];
    let broker = broker.into_iter().cycle().take(restarts);
    let all = std::iter::repeat_n(Trouble::ConsumerDies, kills).chain(broker);
    let mut all: Vec<_> = all.map(|it| (rng.u32(0..living / 10 * 9), it)).collect();
    all.sort_by_key(|(done, _)| *done);
    all
}

/// Who takes part.
struct Town {
    broker: PrivateRabbit,
    folder: TempDir,
    books: Books,
    fates: Fates,
    consumer: Process,
}

impl Town {
    /// Everybody at work, and a publisher.
    async fn start(fates: Fates) -> (Self, Publisher) {
        let broker = PrivateRabbit::start().await;
        let publisher = Publisher::new(settings(&broker.url()));
        publisher.declare(&topology()).await.unwrap();
        sleep(ON_DISK).await;
        let folder = tempfile::tempdir().unwrap();
        let books = Books::open(folder.path());
        books.prepare().await;
        let consumer = Process::start(&broker.url(), folder.path(), fates).await;
        let town = Self {
            broker,
            folder,
            books,
            fates,
            consumer,
        };
        (town, publisher)
    }

    async fn suffer(&mut self, rng: &mut Rng, troubles: Vec<(u32, Trouble)>) {
        for (done, trouble) in troubles {
            self.has_done(done).await;
            sleep(millis(rng.u64(..20))).await;
            match trouble {
                Trouble::ConsumerDies => {
                    self.consumer.kill().await;
                    let (url, folder) = (self.broker.url(), self.folder.path());
                    self.consumer = Process::start(&url, folder, self.fates).await;
                    continue;
                }
                Trouble::BrokerDies => self.broker.kill().await,
                Trouble::BrokerStops => self.broker.stop().await,
            }
            self.broker.restart().await;
        }
    }

    /// Waits until so many had their effect.
    async fn has_done(&self, count: u32) {
        let limit = PATIENCE + millis(5) * self.fates.count;
        let done = timeout(limit, async {
            while self.books.done().await < count {
                sleep(millis(10)).await;
            }
        });
        if done.await.is_err() {
            panic!("{} of {count} had their effect", self.books.done().await);
        }
    }

    /// Waits until there are so many different dead letters, and nothing else in the queues; returns all of them.
    async fn dead(&self, count: usize) -> Vec<Letter> {
        let letters = DeadLetters::in_topology(settings(&self.broker.url()), topology());
        let all = timeout(PATIENCE, async {
            loop {
                let depths = letters.depths().await.unwrap();
                let all = letters.list(Selection::first(MOST)).await.unwrap();
                let different: HashSet<_> = all.iter().map(number).collect();
                if depths.ready + depths.retry == 0 && different.len() >= count {
                    return all;
                }
                sleep(millis(100)).await;
            }
        });
        if let Ok(all) = all.await {
            return all;
        }
        panic!("{count} dead letters: {:?}", letters.depths().await)
    }
}

fn number(letter: &Letter) -> u32 {
    std::str::from_utf8(letter.body()).unwrap().parse().unwrap()
}

/// `MAMPARO_MESSAGES`, `MAMPARO_KILLS` and `MAMPARO_BROKER_RESTARTS` set how many, `MAMPARO_SEED` which.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_message_of_killed_consumers_has_its_effect_once_or_is_a_dead_letter() {
    let seed = set(SEED).unwrap_or_else(|| fastrand::u64(..));
    let count = set(MESSAGES).unwrap_or(1_000);
    let kills = set("MAMPARO_KILLS").unwrap_or(3);
    let restarts = set("MAMPARO_BROKER_RESTARTS").unwrap_or(1);
    println!("{SEED}={seed} {MESSAGES}={count}");
    let fates = Fates { seed, count };
    let dying = fates.dying();
    let living = count - u32::try_from(dying.len()).unwrap();

    let (mut town, publisher) = Town::start(fates).await;
    let began = clock::now();
    let publishing = tokio::spawn(fates.publish(publisher));
    let mut rng = Rng::with_seed(seed);
    let troubles = troubles(&mut rng, kills, restarts, living);
    println!("{troubles:?}");
    town.suffer(&mut rng, troubles).await;
    publishing.await.unwrap();
    town.has_done(living).await;
    town.dead(dying.len()).await;
    // What came twice may still be tried again.
    sleep(5 * DELAY).await;
    town.consumer.stop().await;
    let letters = town.dead(dying.len()).await;
    let took = began.elapsed();

    let once = Sums {
        effects: living,
        numbers: living,
        inbox: living,
    };
    assert_eq!(town.books.sums().await, once);
    for letter in &letters {
        let number = number(letter);
        let expected = dying.get(&number);
        let why = (letter.reason(), letter.detail());
        assert_eq!(Some(&why), expected, "message {number}");
        assert!(!town.books.has(number).await, "message {number}");
    }
    let again = town.books.count("count(*) FROM again").await;
    let twice = letters.len() - dying.len();
    println!(
        "{living} had their effect in {took:?}, {again} came again; {} are dead, {twice} of them twice",
        dying.len()
    );
}
