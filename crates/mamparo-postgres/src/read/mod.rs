//! Everything that reads rows: one statement each, found by an index.
//!
//! - `record` turns rows into transactions and their history
//! - `loader` gathers those who read single transactions into one statement
//! - `ask` is what people and the reconciler ask
//! - `letters` turns rows into messages

mod ask;
mod letters;
mod loader;
mod record;

#[cfg(test)]
pub(crate) use ask::STATEMENTS;
pub(crate) use ask::{census, history, list, request, stuck};
pub(crate) use letters::{dead_letter, fire_or_answer, request_of};
pub(crate) use loader::{Loader, Loads};
pub(crate) use record::{LOAD, number, record, small};
