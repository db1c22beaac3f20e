//! When things happen, and that nothing does in between.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mamparo_core::clock::{self, SystemClock};
use mamparo_durable::backend::{Delivery, Message, PostponeDue, QueueName};
use mamparo_durable::machine::{Patience, Schedule, Utc};
use rusqlite::trace::{TraceEvent, TraceEventCodes};

use super::support::{Disk, LEASE, defer, id};
use crate::durable::SqliteDurable;

/// A machine that is busy with other things is late; it never waits for a poll.
const SOON: Duration = Duration::from_secs(5);

fn now() -> Utc {
    Utc::of(&SystemClock)
}

fn schedule(fire_at: Utc) -> Schedule {
    Schedule {
        attempt: 2,
        seq: 0,
        fire_at,
    }
}

async fn create(file: &SqliteDurable, name: &str, fire_at: Utc) {
    let scheduler = file.backend().scheduler().clone();
    let created = scheduler.create(vec![(id(name), schedule(fire_at))]).await;
    created.into_iter().next().unwrap().unwrap();
}

/// Takes as soon as there may be something, until there is.
async fn wait(file: &SqliteDurable) -> Vec<Delivery> {
    let fires = file.queue(QueueName::Fires);
    loop {
        fires.ready().await;
        let taken = fires.take(1_000, LEASE).await.unwrap();
        if !taken.is_empty() {
            return taken;
        }
    }
}

static STATEMENTS: AtomicUsize = AtomicUsize::new(0);

#[expect(
    clippy::needless_pass_by_value,
    reason = "what SQLite calls has this shape"
)]
fn count(event: TraceEvent<'_>) {
    if let TraceEvent::Stmt(..) = event {
        STATEMENTS.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn between_two_instants_nothing_is_asked_of_the_file() {
    let disk = Disk::new();
    let file = SqliteDurable::open(disk.path()).unwrap();
    create(&file, "far", now().plus(LEASE)).await;
    let due = now().plus(Duration::from_secs(1));
    create(&file, "near", due).await;
    let trace = |file: &rusqlite::Connection, _: &_| {
        file.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count));
        Ok(())
    };
    file.write(trace).await.unwrap();
    let fire = wait(&file).await.remove(0);
    assert_eq!((fire.message.id(), fire.since), (&id("near"), due));
    assert!(now() >= due, "never early");
    assert!(now().since(due) < SOON);
    // The end of the trace's own commit, a look at what is there when it begins to wait, and the taking.
    let asked = STATEMENTS.load(Ordering::Relaxed);
    assert!((5..=12).contains(&asked), "{asked} statements");
}

#[tokio::test]
async fn who_waits_is_woken_by_an_earlier_instant_and_by_what_is_given_back() {
    let disk = Disk::new();
    let file = SqliteDurable::open(disk.path()).unwrap();
    create(&file, "tomorrow", now().plus(Duration::from_secs(86_400))).await;
    let begun = clock::now();
    let (fire, ()) = tokio::join!(wait(&file), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        create(&file, "now", Utc::MIN).await;
    });
    assert_eq!(fire[0].message.id(), &id("now"));
    let receipt = fire[0].receipt.clone();
    let (again, ()) = tokio::join!(wait(&file), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let fires = file.queue(QueueName::Fires);
        fires.release(receipt, Duration::ZERO, true).await.unwrap();
    });
    assert_eq!(again[0].number, 2);
    assert!(
        begun.elapsed() < SOON,
        "the look without a reason comes after a minute"
    );
}

/// The end of a lease is an instant like any other.
#[tokio::test]
async fn what_nobody_settles_is_delivered_again_and_buried_at_last() {
    let disk = Disk::new();
    let file = SqliteDurable::builder(disk.path())
        .redelivery_limit(2)
        .open()
        .unwrap();
    create(&file, "poison", now()).await;
    let fires = file.queue(QueueName::Fires);
    for number in 1..=2 {
        fires.ready().await;
        let mut taken = Vec::new();
        while taken.is_empty() {
            fires.ready().await;
            taken = fires.take(10, Duration::from_millis(50)).await.unwrap();
        }
        assert_eq!(taken[0].number, number);
    }
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(fires.take(10, LEASE).await.unwrap(), []);
    let dead = fires.dead(None, 10).await.unwrap().remove(0);
    assert_eq!(
        (dead.why.as_str(), dead.deliveries),
        ("delivered 2 times", 2)
    );
    assert_eq!(fires.requeue(vec![dead.number]).await.unwrap(), 1);
    let again = wait(&file).await.remove(0);
    assert_eq!(again.number, 1, "as if never delivered");
    fires.bury(again.receipt, "by hand".into()).await.unwrap();
    let number = fires.dead(Some(dead.number), 10).await.unwrap()[0].number;
    assert_eq!(
        fires
            .discard(vec![number], "asked for".into())
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        fires.discard(vec![number], "again".into()).await.unwrap(),
        0
    );
    assert_eq!(fires.depth().await.unwrap().dead, 0);
    let note = "SELECT discarded_for FROM mamparo_durable_dead WHERE id = 'poison'";
    let note: String = disk.raw().query_row(note, [], |row| row.get(0)).unwrap();
    assert_eq!(note, "asked for");
}

#[tokio::test]
async fn what_another_process_writes_is_found_by_the_look_without_a_reason() {
    let disk = Disk::new();
    let look_again = Duration::from_millis(300);
    let file = SqliteDurable::builder(disk.path())
        .look_again(look_again)
        .open()
        .unwrap();
    let other = SqliteDurable::open(disk.path()).unwrap();
    let (fire, ()) = tokio::join!(wait(&file), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        create(&other, "theirs", now()).await;
    });
    assert_eq!(fire[0].message.id(), &id("theirs"));
    assert_eq!(
        other.queue(QueueName::Fires).take(10, LEASE).await.unwrap(),
        [],
        "one lease"
    );
}

#[tokio::test]
async fn ten_thousand_that_are_due_at_one_instant_come_once_each() {
    let disk = Disk::new();
    let file = SqliteDurable::open(disk.path()).unwrap();
    let due = now().plus(Duration::from_millis(500));
    let herd = (0..10_000).map(|number| (id(&format!("t-{number}x")), schedule(due)));
    let herd: Vec<_> = herd.collect();
    for created in file.backend().scheduler().create(herd).await {
        created.unwrap();
    }
    let mut seen = HashSet::new();
    while seen.len() < 10_000 {
        let taken = wait(&file).await;
        assert!(now() >= due, "never early");
        for Delivery { message, .. } in &taken {
            let Message::Fire { id, .. } = message else {
                panic!("a fire")
            };
            assert!(seen.insert(id.clone()), "once");
        }
        let receipts = taken.into_iter().map(|fire| fire.receipt).collect();
        file.queue(QueueName::Fires)
            .acknowledge(receipts)
            .await
            .unwrap();
    }
    let depth = file.queue(QueueName::Fires).depth().await.unwrap();
    assert_eq!((depth.ready, depth.later, depth.taken), (0, 0, 0));
}

/// After a clock that stepped back, nothing is early, and nothing is lost.
#[tokio::test]
async fn a_clock_that_steps_back_makes_things_late_and_not_early() {
    let disk = Disk::new();
    let file = disk.builder().open().unwrap();
    let hour = Duration::from_secs(3600);
    create(&file, "due", disk.hands.now().plus(hour)).await;
    let fires = file.queue(QueueName::Fires);
    disk.hands.turn(hour);
    disk.hands.back(hour);
    assert_eq!(fires.take(10, LEASE).await.unwrap(), []);
    disk.hands.turn(hour);
    assert_eq!(fires.take(10, LEASE).await.unwrap().len(), 1);
    create(&file, "past", Utc::MIN).await;
    create(&file, "never", Utc::MAX).await;
    assert_eq!(fires.take(10, LEASE).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_waits_is_overdue_stuck_and_postponed_by_its_exact_instant() {
    let at_once = Patience {
        scheduled: Duration::ZERO,
        ..Patience::default()
    };
    let disk = Disk::new();
    let backend = disk.open();
    let runner = disk.runner(&backend);
    let (store, outbox) = (backend.store(), backend.outbox().unwrap());
    for name in ["a", "b"] {
        defer(&runner, name).await;
    }
    // Both lie in the same stretch of time; b as an older version wrote it.
    let due = "UPDATE mamparo_durable SET next_fire_at = 1700010014000 + (id = 'b'), watched_from = 1700010000000 + 14001 * (id = 'b')";
    disk.raw().execute_batch(due).unwrap();
    let at = |millis: i64| Utc::from_millis(1_700_010_000_000 + millis).unwrap();
    for (now, overdue) in [(14_000, 0), (14_001, 1), (14_002, 2), (86_400_000, 2)] {
        let census = store.census(at(now)).await.unwrap();
        let since = Some(at(14_000)).filter(|_| overdue > 0);
        assert_eq!((census.overdue, census.overdue_since), (overdue, since));
        let stuck = store.stuck(at(now - 1), at_once, 9).await.unwrap();
        assert_eq!(stuck.len() as u64, overdue);
    }
    for (before, moved) in [(14_000, 0), (14_001, 1), (14_001, 0), (14_002, 1)] {
        let until = at(3_600_000);
        let mut due = PostponeDue::new("psp".into(), at(0), until, Duration::ZERO, 9);
        due.due_before = at(before);
        assert_eq!(outbox.postpone(due).await.unwrap(), moved, "{before}");
    }
}
