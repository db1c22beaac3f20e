//! A connection to the broker that is made again when it is lost, and what its errors mean.

mod backoff;
mod error;
mod live;

pub(crate) use backoff::Backoff;
pub(crate) use error::trouble;
pub use error::{RabbitError, Trouble};
pub(crate) use live::{Link, Live, close, open, short};
