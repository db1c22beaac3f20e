//! Transactions, requests and history in DynamoDB.
//!
//! Each call says how many requests it makes:
//!
//! | call | requests |
//! |---|---|
//! | `begin`, and each of `write` | one `TransactWriteItems` |
//! | `load` | one `GetItem`; of many, one `BatchGetItem` for each 100 |
//! | `request` | one `GetItem` |
//! | `history` | one `Query`, or one for each MiB that is read or skipped |
//! | `stuck` | one `Query` for each state and shard, and a `BatchGetItem` for each 100 that are found |
//! | `list`, `census` | a `Query` for each MiB of the index, of the states that are asked for |
//! | `forget` | one `Query` for each shard of what ended, and for each transaction a `Query` and a `TransactWriteItems` |
//!
//! What is judged is read from the table, consistently; the index only says where to look, and may be late.

mod ask;
mod batch;
mod check;
mod commit;
mod forget;
mod item;
mod read;
pub(crate) mod schema;
#[cfg(test)]
pub(crate) mod tests;
mod transactions;
mod walk;

pub(crate) use batch::{built, dynamo, in_turn, pauses};
pub(crate) use item::{Item, number, text};
pub(crate) use transactions::DynamoStore;
pub(crate) use walk::{Row, Walk};
