//! An engine of the defer plane on SQLite, with troubles that can be made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mamparo::rate_limit::RateLimitPolicy;
use mamparo_core::BoxError;
use mamparo_durable::backend::{Message, NewTransaction, QueueName, Request};
use mamparo_durable::engine::{Engine, Running, Transaction};
use mamparo_durable::machine::{Answer, Outcome, Record, TransactionId, Utc};
use mamparo_durable::policy::{Policies, Policy, Wait};
use mamparo_sqlite::SqliteDurable;
use mamparo_telemetry::Metrics;
use mamparo_telemetry::durable::EngineWatch;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tower::service_fn;

const SECOND: Duration = Duration::from_secs(1);

/// What the provider bears a second.
const RATE: u32 = 20;

/// As many payments begin in each second while all is well.
const DEMAND: u32 = 4;

/// Due at once, and sent within half a minute.
const HERD: u64 = 600;

/// The engine, for as long as it is kept.
#[derive(Debug)]
pub(super) struct Payments {
    engine: Engine,
    _running: Running,
    _watch: EngineWatch,
    _folder: TempDir,
}

impl Payments {
    /// Opens it, with the demand that goes on beside it unless it fails.
    pub(super) fn open(
        metrics: &Metrics,
    ) -> Result<(Self, impl Future<Output = Result<(), BoxError>>), BoxError> {
        let folder = tempfile::tempdir()?;
        let store = SqliteDurable::open(folder.path().join("engine.db"))?;
        let wait = Wait::builder().base(SECOND).factor(1.0).jitter(0.1);
        let wait = wait.build()?;
        let policy = Policy::builder().business(wait).technical(wait);
        let rate = RateLimitPolicy::per(SECOND, RATE).max_wait(60 * SECOND);
        let engine = Engine::builder(store.backend())
            .policies(Policies::new(policy.build()?))
            .rate(rate.build()?)
            .reconcile_every(SECOND)
            .listener(Arc::new(metrics.clone()))
            .build()?;
        let running = engine.run(service_fn(provider));
        let watch = metrics.watch_engine(engine.clone(), SECOND / 2)?;
        let demand = demand(engine.clone());
        let payments = Self {
            engine,
            _running: running,
            _watch: watch,
            _folder: folder,
        };
        Ok((payments, demand))
    }

    /// Leaves a transaction where a crash leaves it, publishes what nobody can handle, and lets much be due at once.
    pub(super) async fn make_trouble(&self) -> Result<(), BoxError> {
        let (backend, runner) = (self.engine.backend(), self.engine.runner());
        let terms = runner.terms(TransactionId::new("stuck")?, "payment", None);
        let mut stuck = Record::sending(terms);
        stuck.progress.updated_at = Utc::MIN;
        let stuck = NewTransaction::new(stuck, "5 EUR")?;
        backend.store().begin(stuck).await?;
        let unknown = Message::Answer {
            id: TransactionId::new("unknown")?,
            answer: Answer::new(1, 0, Outcome::Success),
        };
        let answers = backend.queue(QueueName::Answers);
        answers.publish(vec![unknown]).await?;
        let herd = (0..HERD).map(|number| refused(self.engine.clone(), format!("herd-{number}")));
        for refused in herd.collect::<JoinSet<_>>().join_all().await {
            refused?;
        }
        Ok(())
    }
}

async fn demand(engine: Engine) -> Result<(), BoxError> {
    let mut ticks = tokio::time::interval(SECOND / DEMAND);
    for number in 0_u64.. {
        ticks.tick().await;
        refused(engine.clone(), format!("payment-{number}")).await?;
    }
    Ok(())
}

async fn refused(engine: Engine, name: String) -> Result<(), BoxError> {
    let refused = Answer::new(1, 0, Outcome::Refused);
    let payment = Transaction::new(TransactionId::new(&name)?, "payment", "5 EUR");
    let payment = payment.dependency("bank").answered(refused);
    engine.begin(payment).await?;
    Ok(())
}

/// One answer in ten does not come.
async fn provider(request: Request) -> Result<Option<Answer>, BoxError> {
    static SENT: AtomicU64 = AtomicU64::new(0);
    let lost = SENT.fetch_add(1, Relaxed).is_multiple_of(10);
    let outcome = if lost {
        Outcome::Technical
    } else {
        Outcome::Success
    };
    Ok(Some(request.answer(outcome)))
}
