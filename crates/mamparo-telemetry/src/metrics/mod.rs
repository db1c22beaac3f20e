//! What the layers report, as metrics, and as events on the operation's span.
//!
//! [`Metrics`] is an [`Observer`](mamparo_core::Observer): give it to every layer of a stack. What one call is,
//! and each of its sends, is counted by [`OperationLayer`](crate::OperationLayer) and
//! [`AttemptLayer`](crate::AttemptLayer), with the instruments of the same [`CATALOG`]. `docs/metrics.md` has the
//! table, and how amplification, recovery and use of the budget follow from it.
//!
//! Operations and attempts are never in one series. No metric carries a URL, an id or a key.

mod attributes;
mod catalog;
mod instruments;

pub(crate) use attributes::Attributes;
pub use catalog::{CATALOG, Kind, Metric};
pub(crate) use instruments::Instruments;
