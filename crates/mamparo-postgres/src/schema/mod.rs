//! The tables: made, brought up to date, or refused.
//!
//! Each migration is a file with the next number, applied once, all that are missing in one transaction under an advisory lock,
//! so that engines which start together don't collide. The table `mamparo_schema` says which are applied. A newer version's
//! tables are refused, and so are another program's of the same names: neither is touched. Who only has the rights to read and
//! write rows can start an engine, once the tables are there.

mod migrate;

#[cfg(test)]
pub(crate) use migrate::MIGRATIONS;
pub(crate) use migrate::{prepare, require};
