//! Everything that writes rows goes through here, so that what comes together is one commit.
//!
//! ```text
//!  commit, write, begin, publish, create, acknowledge, …     callers wait for their own result
//!        │ one Job each
//!        ▼
//!  bounded channel ──► few writers: gather ─► execute a Batch in one transaction ─► reply
//! ```
//!
//! - `job` is what one caller wants, and what came of it
//! - `writer` gathers jobs, isolates one that the server refuses, and repeats what two transactions spoiled for each other
//! - `batch` writes many jobs with few statements: each is an array of rows, in the order of their ids
//! - `rows` makes those arrays
//!
//! A commit costs as much for one job as for a thousand. While one writer waits for its commit, the next gathers.

mod batch;
mod job;
mod messages;
mod rows;
mod statements;
mod steps;
mod writer;

pub(crate) use job::{Desk, Done, Wanted};
#[cfg(test)]
pub(crate) use statements::STATEMENTS;
pub(crate) use writer::Writer;
