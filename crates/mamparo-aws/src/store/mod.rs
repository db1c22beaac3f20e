//! Transactions, requests and history in DynamoDB.

pub(crate) mod schema;
