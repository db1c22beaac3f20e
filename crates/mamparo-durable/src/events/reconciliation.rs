//! Compares two sources that should agree: the net under the trapeze.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::{BoxError, InvalidSetting};

use super::compare::{Comparison, Discrepancy, Entry};
use super::watchdog::pause;
use crate::backend::{BackendError, BoxFuture, Trouble};
use crate::machine::AlertKind;
use crate::supervise::{Watch, Worker, about};

/// As many entries as are read from a source at once.
const PAGE: usize = 1_000;

/// What a reconciliation reads: one service's view, in the order of its keys.
///
/// A closure `async |after: Option<String>, limit: usize| Ok::<Vec<Entry>, BoxError>(…)` is one.
pub trait Source: Send + Sync + 'static {
    /// Reads at most `limit` entries with a key greater than `after`, ordered by key, byte by byte (`COLLATE "C"` in PostgreSQL).
    ///
    /// Leave out what may still be under way, such as what is younger than 20 minutes: it would be reported.
    fn read(
        &self,
        after: Option<String>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, BoxError>>;
}

impl<F, Fut> Source for F
where
    F: Fn(Option<String>, usize) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<Entry>, BoxError>> + Send + 'static,
{
    fn read(
        &self,
        after: Option<String>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, BoxError>> {
        Box::pin(self(after, limit))
    }
}

/// Compares two sources every so often, and tells every discrepancy; a [`Worker`]. A cycle that fails is told, and the next one runs.
///
/// ```
/// use mamparo_core::BoxError;
/// use mamparo_durable::events::{Entry, Reconciliation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let orders = |after: Option<String>, _limit: usize| async move {
///     let all = vec![Entry::new("order-1", "PAID"), Entry::new("order-2", "CANCELLED")];
///     Ok::<_, BoxError>(all.into_iter().filter(|entry| Some(&entry.key) > after.as_ref()).collect())
/// };
/// let payments = |after: Option<String>, _limit: usize| async move {
///     let all = vec![Entry::new("order-1", "PAID"), Entry::new("order-2", "PAID")];
///     Ok::<_, BoxError>(all.into_iter().filter(|entry| Some(&entry.key) > after.as_ref()).collect())
/// };
/// let reconciliation = Reconciliation::builder("orders-payments", orders, payments).build()?;
/// let found = reconciliation.compare().await?;
/// assert_eq!(found[0].to_string(), "order-2: CANCELLED here, PAID there");
/// # Ok(())
/// # }
/// ```
pub struct Reconciliation {
    name: String,
    left: Arc<dyn Source>,
    right: Arc<dyn Source>,
    every: Duration,
    most: usize,
}

impl Reconciliation {
    /// Starts from a name and two sources; every hour, and at most 1000 discrepancies a cycle.
    pub fn builder(
        name: impl Into<String>,
        left: impl Source,
        right: impl Source,
    ) -> ReconciliationBuilder {
        ReconciliationBuilder(Self {
            name: name.into(),
            left: Arc::new(left),
            right: Arc::new(right),
            every: Duration::from_secs(3600),
            most: 1_000,
        })
    }

    /// Compares once, and returns what does not agree, in the order of the keys.
    ///
    /// # Errors
    ///
    /// A source's own, or that it is not in order.
    pub async fn compare(&self) -> Result<Vec<Discrepancy>, BackendError> {
        let mut left = Side::of("left", &*self.left);
        let mut right = Side::of("right", &*self.right);
        let mut found = Vec::new();
        loop {
            left.fill().await?;
            right.fill().await?;
            if left.is_over() && right.is_over() {
                return Ok(found);
            }
            // Up to there both are known.
            let horizon = [left.horizon(), right.horizon()]
                .into_iter()
                .flatten()
                .min();
            let compared =
                Comparison::new(left.up_to(horizon.as_ref()), right.up_to(horizon.as_ref()));
            found.extend(compared.take(self.most - found.len()));
            if found.len() >= self.most {
                return Ok(found);
            }
        }
    }

    async fn work(&self, watch: &Watch) -> Result<(), BackendError> {
        while !watch.is_stopped() {
            let compared = tokio::select! {
                // Nothing is half done.
                () = watch.stopped() => return Ok(()),
                compared = self.compare() => compared,
            };
            match compared {
                Ok(found) => {
                    watch.works();
                    for discrepancy in found {
                        watch.alert(AlertKind::Discrepancy, 1, &discrepancy.to_string());
                    }
                }
                Err(error) => watch.fails(&error),
            }
            watch.pause(about(self.every)).await;
        }
        Ok(())
    }
}

/// One source, read page by page.
struct Side<'a> {
    name: &'static str,
    source: &'a dyn Source,
    rest: VecDeque<Entry>,
    last: Option<String>,
    ended: bool,
}

impl<'a> Side<'a> {
    const fn of(name: &'static str, source: &'a dyn Source) -> Self {
        Self {
            name,
            source,
            rest: VecDeque::new(),
            last: None,
            ended: false,
        }
    }

    async fn fill(&mut self) -> Result<(), BackendError> {
        if self.ended || !self.rest.is_empty() {
            return Ok(());
        }
        let page = self.source.read(self.last.clone(), PAGE).await;
        let page = page.map_err(|error| self.failed(error))?;
        self.ended = page.is_empty();
        for entry in page {
            if self.last.as_ref().is_some_and(|last| *last >= entry.key) {
                let why = format!(
                    "the key {} does not come after the one before it",
                    entry.key
                );
                return Err(self.failed(why.into()));
            }
            self.last = Some(entry.key.clone());
            self.rest.push_back(entry);
        }
        Ok(())
    }

    fn failed(&self, error: BoxError) -> BackendError {
        let message = format!("the {} source can't be read: {error}", self.name);
        BackendError::new(Trouble::Unavailable, message).from_source(error)
    }

    fn is_over(&self) -> bool {
        self.ended && self.rest.is_empty()
    }

    /// Up to where it is known; `None` is to its end.
    fn horizon(&self) -> Option<String> {
        if self.ended {
            return None;
        }
        self.last.clone()
    }

    fn up_to(&mut self, horizon: Option<&String>) -> impl Iterator<Item = Entry> + use<> {
        let count = match horizon {
            Some(horizon) => self.rest.partition_point(|entry| entry.key <= *horizon),
            None => self.rest.len(),
        };
        let rest = self.rest.split_off(count);
        std::mem::replace(&mut self.rest, rest).into_iter()
    }
}

/// Makes a [`Reconciliation`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ReconciliationBuilder(Reconciliation);

impl ReconciliationBuilder {
    /// Sets how often it compares, each time a tenth sooner or later; every hour by default.
    pub const fn every(mut self, pause: Duration) -> Self {
        self.0.every = pause;
        self
    }

    /// Sets how many discrepancies a cycle tells at most, 1000 by default; it ends there.
    pub const fn most(mut self, discrepancies: usize) -> Self {
        self.0.most = discrepancies;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when a number or a duration is out of its bounds.
    pub fn build(self) -> Result<Reconciliation, InvalidSetting> {
        pause(self.0.every)?;
        if self.0.most == 0 {
            return Err(InvalidSetting::new("most", 0, "must be at least 1"));
        }
        Ok(self.0)
    }
}

impl Worker for Reconciliation {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move { self.work(&watch).await })
    }
}

impl fmt::Debug for Reconciliation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconciliation")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
