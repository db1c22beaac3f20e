//! Messages: what is published, what is delivered, and how one is copied from queue to queue.

mod copy;
mod delivery;
pub mod headers;
mod outgoing;

pub(crate) use copy::{Copied, attempts_made, copy, number, with_number};
pub use delivery::Delivery;
pub(crate) use delivery::{header, text};
pub use outgoing::Message;
