//! A connection to the broker that is made again when it is lost, and what its errors mean.

mod error;
mod live;
mod waits;

pub(crate) use error::{ANSWER, answered, trouble};
pub use error::{RabbitError, Trouble};
pub(crate) use live::{Link, Live, close, open, short};
pub(crate) use waits::Waits;
