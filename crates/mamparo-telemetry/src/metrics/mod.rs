//! What the layers report, as metrics, and as events on the operation's span.
//!
//! [`Metrics`] is an [`Observer`](mamparo_core::Observer): give it to every layer of a stack. What one call is,
//! and each of its sends, is counted by [`OperationLayer`](crate::OperationLayer) and
//! [`AttemptLayer`](crate::AttemptLayer), with the instruments of the same [`CATALOG`]. `docs/metrics.md` has the
//! table, and how amplification, recovery and use of the budget follow from it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use mamparo_core::{CallContext, Event, Kind, Observer, What};
//! use mamparo_telemetry::Metrics;
//! use std::time::Duration;
//!
//! // With the global meter provider, as soon as one is installed.
//! let observer: Arc<dyn Observer> = Arc::new(Metrics::new());
//!
//! // A layer that was given it reports, for example, that it will send again.
//! let what = What::ResendScheduled {
//!     next: 2,
//!     reason: Kind::Unavailable,
//!     wait: Duration::from_millis(80),
//!     hinted: false,
//!     remaining: None,
//! };
//! Event::report(Some(&observer), &CallContext::EMPTY, what);
//! ```
//!
//! Operations and attempts are never in one series. No metric carries a URL, an id or a key.

mod attributes;
mod breakers;
mod budgets;
mod catalog;
mod count;
pub(crate) mod deferred;
mod instruments;
mod labels;
pub(crate) mod messages;
mod metric;
mod observer;
pub(crate) mod outbox;
mod pairs;
mod places;
mod resends;
mod sources;
mod told;
mod watched;

pub(crate) use attributes::Attributes;
pub use breakers::MAX_BREAKERS;
pub use budgets::MAX_BUDGETS;
pub use catalog::CATALOG;
pub(crate) use instruments::Instruments;
pub(crate) use labels::{AttemptLabels, OperationLabels, RpcLabels, ServedLabels};
pub use metric::{Kind, Metric};
pub use observer::Metrics;
pub use places::{MAX_BULKHEADS, Places};
pub(crate) use resends::CallOfMethod;
pub use sources::MAX_MONITORED;

#[cfg(test)]
mod tests;
