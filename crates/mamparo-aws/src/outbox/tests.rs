//! The outbox with queues in memory: what its relay finishes, and how many requests a step takes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_durable::backend::{
    Backend, BackendError, BoxFuture, Committed, Created, Message, NewTransaction, Outbox as _,
    QueueName, Scheduler, Step, Store as _, Trouble,
};
use mamparo_durable::machine::{
    Cause, Effect, Progress, Record, Schedule, State, TransactionId, Utc,
};
use mamparo_durable::memory::Memory;
use mamparo_durable::supervise::{Supervised, Supervisor};
use mamparo_testkit::private::PrivateMoto;

use super::DynamoOutbox;
use super::carrier::Carrier;
use super::notes::{LEASE, Note, Notes};
use super::relay::Relay;
use crate::store::DynamoStore;
use crate::store::tests::support::{
    Ear, connect, heard, id, make_tables, now, record, settings, transition, waiting,
};

const APPLIED: Committed = Committed::Applied { conflict: false };
const LONG: Duration = Duration::from_secs(60);

/// A clock that can be set forward.
#[derive(Clone, Debug, Default)]
struct Ahead(Arc<AtomicU64>);

impl WallClock for Ahead {
    fn now(&self) -> SystemTime {
        SystemClock.now() + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// A scheduler that fails while it is told to.
#[derive(Debug)]
struct Broken {
    inner: Arc<dyn Scheduler>,
    broken: Arc<AtomicBool>,
}

impl Scheduler for Broken {
    fn create(
        &self,
        schedules: Vec<(TransactionId, Schedule)>,
    ) -> BoxFuture<'_, Vec<Result<Created, BackendError>>> {
        if self.broken.load(Ordering::SeqCst) {
            let fails = |_| Err(BackendError::new(Trouble::Unavailable, "broken"));
            return Box::pin(async move { schedules.into_iter().map(fails).collect() });
        }
        self.inner.create(schedules)
    }

    fn delete(
        &self,
        id: TransactionId,
        attempt: u32,
        seq: u32,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        self.inner.delete(id, attempt, seq)
    }
}

struct World {
    store: DynamoStore,
    memory: Backend,
    scheduler: Arc<dyn Scheduler>,
}

impl World {
    fn new(store: DynamoStore) -> Self {
        let memory = Memory::new(SystemClock).backend();
        let scheduler = Arc::clone(memory.scheduler());
        Self {
            store,
            memory,
            scheduler,
        }
    }

    fn carrier(&self) -> Carrier {
        Carrier {
            store: self.store.clone(),
            scheduler: Arc::clone(&self.scheduler),
            queues: QueueName::ALL.map(|name| Arc::clone(self.memory.queue(name))),
        }
    }

    fn outbox(&self) -> DynamoOutbox {
        let Carrier {
            store,
            scheduler,
            queues,
        } = self.carrier();
        let seldom = Duration::from_secs(3_600);
        DynamoOutbox::looking(store, scheduler, queues, Arc::new(()), seldom)
    }

    fn relay(&self) -> Supervised {
        let relay = Relay {
            carrier: self.carrier(),
            notes: Notes::new(self.store.clone()),
            every: Duration::from_millis(30),
        };
        Supervisor::new().worker(relay).run()
    }

    async fn begin(&self, record: &Record) {
        let new = NewTransaction::new(record.clone(), &b"the request"[..]).unwrap();
        self.store.begin(new).await.unwrap();
    }

    async fn notes(&self) -> usize {
        let all = self.store.client().scan();
        let all = all.table_name(self.store.names().outbox()).send().await;
        all.unwrap().items.unwrap().len()
    }

    async fn ready(&self, queue: QueueName) -> u64 {
        self.memory.queue(queue).depth().await.unwrap().ready
    }
}

/// A refusal's step: two transitions, and the schedule of what waits.
fn refused(record: &Record, fire_at: Utc) -> Step {
    let to = |state| waiting(record, state, fire_at);
    let (scheduling, scheduled) = (to(State::Scheduling), to(State::Scheduled));
    let mut step = Step::new(record.terms.id.clone());
    step.writes = vec![
        transition(&record.progress, &scheduling, Cause::Refused),
        transition(&scheduling, &scheduled, Cause::Confirmed),
    ];
    step.effects = vec![Effect::Schedule(Schedule {
        attempt: 2,
        seq: 0,
        fire_at,
    })];
    step
}

/// A fire's step: claimed and sent.
fn claimed(record: &Record, fire_at: Utc) -> Step {
    let from = waiting(record, State::Scheduled, fire_at);
    let sending = Progress {
        state: State::Sending,
        attempt_current: 2,
        next_fire_at: None,
        ..from.clone()
    };
    let sent = Progress {
        state: State::InFlight,
        attempt_next: None,
        ..sending.clone()
    };
    let mut step = Step::new(record.terms.id.clone());
    step.writes = vec![
        transition(&from, &sending, Cause::Claimed),
        transition(&sending, &sent, Cause::Published),
    ];
    step.effects = vec![Effect::Send { attempt: 2, seq: 0 }];
    step
}

/// Its relay looks once as it starts, and not again in a test.
async fn has_looked(ear: &Ear) {
    until("the relay has looked", async || {
        ear.counts().get("Query").is_some_and(|looks| *looks >= 8)
    })
    .await;
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let came = tokio::time::timeout(Duration::from_secs(20), wait).await;
    assert!(came.is_ok(), "{what}");
}

#[tokio::test]
async fn what_a_dead_engine_left_is_carried_out_once_by_the_relays_of_others() {
    let world = World::new(heard(&Ear::default()).await);
    let at = record("t");
    world.begin(&at).await;
    let mut step = refused(&at, now());
    step.effects.push(Effect::Send { attempt: 2, seq: 0 });
    step.effects.push(Effect::Refire { attempt: 7, seq: 0 });
    let notes = Notes::new(world.store.clone());
    let note = Note::new(&step.id, step.effects.clone(), now().minus(2 * LEASE));
    let put = notes.put(&note).unwrap();
    world.store.commit(&step, Some(put)).await.unwrap();
    assert_eq!(world.notes().await, 1);
    let relays = [world.relay(), world.relay(), world.relay()];
    until("the note is done", async || world.notes().await == 0).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(world.ready(QueueName::Fires).await, 2);
    assert_eq!(world.ready(QueueName::Requests).await, 1);
    let requests = world.memory.queue(QueueName::Requests);
    let taken = requests.take(1, LONG).await.unwrap().remove(0);
    match taken.message {
        Message::Request(request) => assert_eq!(&request.body[..], b"the request"),
        other => panic!("{other:?}"),
    }
    assert!(relays.iter().all(Supervised::is_ready));
}

#[tokio::test]
async fn a_note_under_a_lease_is_left_to_whoever_has_it() {
    let world = World::new(heard(&Ear::default()).await);
    let at = record("t");
    world.begin(&at).await;
    let step = refused(&at, now());
    let notes = Notes::new(world.store.clone());
    let note = Note::new(&step.id, step.effects.clone(), now());
    let put = notes.put(&note).unwrap();
    world.store.commit(&step, Some(put)).await.unwrap();
    let _relay = world.relay();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(
        (world.notes().await, world.ready(QueueName::Fires).await),
        (1, 0)
    );
}

#[tokio::test]
async fn a_step_whose_effects_fail_is_done_and_the_relay_does_the_rest() {
    let (clock, ear) = (Ahead::default(), Ear::default());
    let url = PrivateMoto::shared().await.url();
    let aws = connect(settings(&url).wall_clock(clock.clone()), &ear).await;
    make_tables(&aws).await;
    let mut world = World::new(DynamoStore::new(aws));
    let broken = Arc::new(AtomicBool::new(true));
    world.scheduler = Arc::new(Broken {
        inner: Arc::clone(world.memory.scheduler()),
        broken: Arc::clone(&broken),
    });
    let at = record("t");
    world.begin(&at).await;
    let outbox = world.outbox();
    has_looked(&ear).await;
    let committed = outbox.commit(vec![refused(&at, now())]).await.remove(0);
    assert_eq!(committed.unwrap(), APPLIED);
    let stands = world.store.stored(&id("t")).await.unwrap().unwrap();
    assert_eq!(stands.progress.state, State::Scheduled);
    assert_eq!(
        (world.notes().await, world.ready(QueueName::Fires).await),
        (1, 0)
    );
    clock.0.store(2 * LEASE.as_secs(), Ordering::SeqCst);
    let relay = world.relay();
    until("it fails", async || !relay.is_ready()).await;
    broken.store(false, Ordering::SeqCst);
    clock.0.store(4 * LEASE.as_secs(), Ordering::SeqCst);
    until("it is done", async || world.notes().await == 0).await;
    until("it works", async || relay.is_ready()).await;
    assert_eq!(world.ready(QueueName::Fires).await, 1);
}

/// The requests to the queues and the scheduler are counted in `crate::tests`.
#[tokio::test]
async fn a_deferral_takes_three_requests_to_the_store_and_a_fire_four() {
    let ear = Ear::default();
    let world = World::new(heard(&ear).await);
    let outbox = world.outbox();
    has_looked(&ear).await;
    let at = record("t");
    world.begin(&at).await;
    let fire_at = now();
    let counts = |names: &[(&str, usize)]| -> BTreeMap<String, usize> {
        names
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    };
    for (step, expected) in [
        (
            refused(&at, fire_at),
            counts(&[
                ("GetItem", 1),
                ("TransactWriteItems", 1),
                ("BatchWriteItem", 1),
            ]),
        ),
        (
            claimed(&at, fire_at),
            counts(&[
                ("GetItem", 1),
                ("TransactWriteItems", 1),
                ("BatchGetItem", 1),
                ("BatchWriteItem", 1),
            ]),
        ),
    ] {
        ear.forget();
        world.store.load(vec![id("t")]).await.remove(0).unwrap();
        let committed = outbox.commit(vec![step]).await.remove(0);
        assert_eq!(committed.unwrap(), APPLIED);
        assert_eq!(ear.counts(), expected);
    }
}
