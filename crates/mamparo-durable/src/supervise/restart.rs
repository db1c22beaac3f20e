//! Starts a task again when it dies, and gives up when it dies too often.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::backend::{BackendError, BoxFuture};
use crate::handler::Listener;
use crate::machine::{Alert, AlertKind};

/// A task that has run for so long has not died before.
const FORGIVEN: Duration = Duration::from_secs(60);

/// The waits between tries: doubled each time, up to five seconds.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Ever longer waits, each somewhere between half and all of its length, so that engines don't ask in step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    pub(crate) fn next(&mut self) -> Duration {
        let doubled = FIRST_WAIT.saturating_mul(1 << self.0.min(16));
        self.0 += 1;
        doubled
            .min(LONGEST_WAIT)
            .mul_f64(fastrand::f64().mul_add(0.5, 0.5))
    }
}

/// What makes a task anew.
pub(crate) type Make = Box<dyn Fn() -> BoxFuture<'static, Result<(), BackendError>> + Send>;

/// A task, and what makes it anew.
pub(crate) struct Restarted {
    pub(crate) name: Arc<str>,
    pub(crate) make: Make,
    pub(crate) max_restarts: u32,
    /// Is told whether it works.
    pub(crate) works: Box<dyn Fn(bool) + Send + Sync>,
    pub(crate) listener: Arc<dyn Listener>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Restarted {
    /// Runs it until it stops because it was told to.
    ///
    /// # Errors
    ///
    /// What it died of, when it dies too often.
    pub(crate) async fn run(self) -> Result<(), String> {
        let mut deaths = 0;
        let mut backoff = Backoff::default();
        loop {
            let began = clock::now();
            // Dropped, it takes the task with it.
            let mut alone = JoinSet::new();
            alone.spawn((self.make)());
            let why = match alone.join_next().await {
                Some(Ok(Ok(()))) | None if is_stopped(&self.stop) => return Ok(()),
                ended => died_of(ended),
            };
            if clock::now() - began > FORGIVEN {
                (deaths, backoff) = (0, Backoff::default());
            }
            deaths += 1;
            (self.works)(false);
            let detail = format!("{}: {why}", self.name);
            let alert = Alert::general(AlertKind::TaskDied, u64::from(deaths));
            self.listener.alert(&alert.with_detail(detail.as_str()));
            if deaths > self.max_restarts {
                return Err(why);
            }
            until_stop(&self.stop, backoff.next()).await;
            if is_stopped(&self.stop) {
                return Ok(());
            }
            (self.works)(true);
        }
    }
}

fn died_of(ended: Option<Result<Result<(), BackendError>, JoinError>>) -> String {
    match ended {
        Some(Ok(Ok(()))) | None => "it ended by itself".to_owned(),
        Some(Ok(Err(error))) => error.to_string(),
        Some(Err(error)) => match error.try_into_panic() {
            Ok(panic) => panicked(&*panic),
            Err(error) => error.to_string(),
        },
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it panicked: {}", said.unwrap_or("without a message"))
}

/// Tells whether it is to stop: it was told to, or nobody is left to tell it.
pub(crate) fn is_stopped(stop: &watch::Receiver<bool>) -> bool {
    *stop.borrow() || stop.has_changed().is_err()
}

/// Waits until it is to stop.
pub(crate) async fn stopped(stop: &watch::Receiver<bool>) {
    let mut stop = stop.clone();
    // An error says that nobody is left to tell it.
    drop(stop.wait_for(|stop| *stop).await);
}

/// Returns a tenth less or more, at random: replicas that were started together don't stay in step.
pub(crate) fn about(every: Duration) -> Duration {
    every.mul_f64(fastrand::f64().mul_add(0.2, 0.9))
}

/// Waits for so long, or until it is to stop.
pub(crate) async fn until_stop(stop: &watch::Receiver<bool>, wait: Duration) {
    drop(tokio::time::timeout(wait, stopped(stop)).await);
}
