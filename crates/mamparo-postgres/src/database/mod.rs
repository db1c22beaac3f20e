//! The way to the server: connections, their bounds, and what its errors mean.
//!
//! - [`Database`] lends connections, each call bounded, each connection that failed closed
//! - `trouble` tells what is asked again from what is refused

mod lend;
mod trouble;

pub(crate) use lend::{Database, Work, options};
pub(crate) use trouble::{
    corrupt, incompatible, is_conflict, is_lost, is_of_a_row, shared_trouble, stopped, trouble,
};
