//! Who hears what happens.

use std::fmt::Debug;
use std::time::Duration;

use crate::backend::QueueName;
use crate::events::Backlog;
use crate::machine::{Alert, AuditEvent, Label, Note, Terms};

/// Hears what happens to transactions. Handlers neither log nor count; telemetry does, from this.
///
/// Called on the path of the message: it must not block.
///
/// ```
/// use mamparo_durable::handler::Listener;
/// use mamparo_durable::machine::Alert;
///
/// #[derive(Debug)]
/// struct Pager;
///
/// impl Listener for Pager {
///     fn alert(&self, alert: &Alert) {
///         println!("{}: {:?}", alert.kind.as_str(), alert.transaction_id);
///     }
/// }
/// ```
pub trait Listener: Debug + Send + Sync + 'static {
    /// Something that a person should hear of. It may be told again after a crash.
    fn alert(&self, alert: &Alert) {
        let _ = alert;
    }

    /// A transition was stored.
    fn transition(&self, terms: &Terms, event: &AuditEvent) {
        let _ = (terms, event);
    }

    /// A message was handled, so long after it was published, or, a fire, after it was due.
    fn handled(&self, queue: QueueName, note: Note, lag: Duration) {
        let _ = (queue, note, lag);
    }

    /// So many transactions were postponed together, because the breaker of their dependency is open.
    fn postponed(&self, dependency: &Label, transactions: u64) {
        let _ = (dependency, transactions);
    }

    /// So many transactions were forgotten, whose end was long ago.
    fn forgotten(&self, transactions: u64) {
        let _ = transactions;
    }

    /// A relay published so many events.
    fn published(&self, relay: &str, events: u64) {
        let _ = (relay, events);
    }

    /// The broker refused so many events of a relay, or did not confirm them.
    fn unconfirmed(&self, relay: &str, events: u64) {
        let _ = (relay, events);
    }

    /// What a relay has before it, and how long the oldest of it has waited: its lag. Told every few seconds.
    fn backlog(&self, relay: &str, backlog: &Backlog, lag: Duration) {
        let _ = (relay, backlog, lag);
    }

    /// A watchdog compensated so many stuck sagas.
    fn compensated(&self, watchdog: &str, sagas: u64) {
        let _ = (watchdog, sagas);
    }
}

/// Hears nothing.
impl Listener for () {}

/// Several listeners, that hear everything in this order.
///
/// ```
/// use mamparo_durable::handler::{Listener, Listeners};
///
/// let both = Listeners::default().and(()).and(());
/// # let _: &dyn Listener = &both;
/// ```
#[derive(Debug, Default)]
pub struct Listeners(Vec<Box<dyn Listener>>);

impl Listeners {
    /// Adds one that hears after those that are here.
    #[must_use]
    pub fn and(mut self, listener: impl Listener) -> Self {
        self.0.push(Box::new(listener));
        self
    }
}

impl Listener for Listeners {
    fn alert(&self, alert: &Alert) {
        self.0.iter().for_each(|it| it.alert(alert));
    }

    fn transition(&self, terms: &Terms, event: &AuditEvent) {
        self.0.iter().for_each(|it| it.transition(terms, event));
    }

    fn handled(&self, queue: QueueName, note: Note, lag: Duration) {
        self.0.iter().for_each(|it| it.handled(queue, note, lag));
    }

    fn postponed(&self, dependency: &Label, transactions: u64) {
        self.0
            .iter()
            .for_each(|it| it.postponed(dependency, transactions));
    }

    fn forgotten(&self, transactions: u64) {
        self.0.iter().for_each(|it| it.forgotten(transactions));
    }

    fn published(&self, relay: &str, events: u64) {
        self.0.iter().for_each(|it| it.published(relay, events));
    }

    fn unconfirmed(&self, relay: &str, events: u64) {
        self.0.iter().for_each(|it| it.unconfirmed(relay, events));
    }

    fn backlog(&self, relay: &str, backlog: &Backlog, lag: Duration) {
        self.0.iter().for_each(|it| it.backlog(relay, backlog, lag));
    }

    fn compensated(&self, watchdog: &str, sagas: u64) {
        self.0.iter().for_each(|it| it.compensated(watchdog, sagas));
    }
}
