//! The store's trait.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mamparo_durable::backend::{
    BackendError, Begun, BoxFuture, Census, Filter, NewTransaction, Step, Store, Written,
};
use mamparo_durable::machine::{AuditEvent, Patience, Record, TransactionId, Utc, Write};

use super::in_turn;
use super::item::corrupt;
use crate::connection::Aws;
use crate::names::Names;

/// Transactions in DynamoDB. Clones share the client.
#[derive(Clone, Debug)]
pub(crate) struct DynamoStore {
    aws: Aws,
    table: Arc<str>,
}

impl DynamoStore {
    pub(crate) fn new(aws: Aws) -> Self {
        let table = aws.names().transactions().into();
        Self { aws, table }
    }

    pub(crate) fn client(&self) -> &aws_sdk_dynamodb::Client {
        self.aws.dynamo()
    }

    /// The table of transactions.
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    pub(crate) fn names(&self) -> &Names {
        self.aws.names()
    }

    pub(crate) fn now(&self) -> Utc {
        self.aws.now()
    }

    /// As many requests of one call are under way at once.
    pub(crate) fn in_flight(&self) -> usize {
        self.aws.settings().in_flight
    }

    pub(super) fn retention(&self) -> Duration {
        self.aws.settings().retention
    }
}

impl Store for DynamoStore {
    fn begin(&self, new: NewTransaction) -> BoxFuture<'_, Result<Begun, BackendError>> {
        Box::pin(async move {
            let mut step = Step::new(new.record.terms.id.clone());
            step.begin = Some(new);
            match self.commit(&step, None).await? {
                Written::Applied => Ok(Begun::New),
                Written::Missed(Some(there)) => Ok(Begun::Exists(there)),
                Written::Missed(None) => {
                    let words = format!(
                        "transaction {} was stored and is gone; look who deletes items",
                        step.id
                    );
                    Err(corrupt(words))
                }
            }
        })
    }

    fn load(
        &self,
        ids: Vec<TransactionId>,
    ) -> BoxFuture<'_, Vec<Result<Option<Record>, BackendError>>> {
        Box::pin(async move { self.load_all(&ids).await })
    }

    fn request(&self, id: TransactionId) -> BoxFuture<'_, Result<Option<Bytes>, BackendError>> {
        Box::pin(async move { self.read_request(&id).await })
    }

    fn write(
        &self,
        writes: Vec<(TransactionId, Write)>,
    ) -> BoxFuture<'_, Vec<Result<Written, BackendError>>> {
        Box::pin(async move {
            let write = |id, write| async move {
                let mut step = Step::new(id);
                step.writes.push(write);
                self.commit(&step, None).await
            };
            in_turn(writes, self.in_flight(), write).await
        })
    }

    fn history(
        &self,
        id: TransactionId,
        skip: usize,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AuditEvent>, BackendError>> {
        Box::pin(async move { self.read_history(&id, skip, limit).await })
    }

    fn stuck(
        &self,
        now: Utc,
        patience: Patience,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>> {
        Box::pin(self.find_stuck(now, patience, limit))
    }

    fn list(
        &self,
        filter: Filter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>> {
        Box::pin(self.find_listed(filter, limit))
    }

    fn forget(&self, ended_by: Utc, limit: usize) -> BoxFuture<'_, Result<u64, BackendError>> {
        Box::pin(self.forget_old(ended_by, limit))
    }

    fn census(&self, now: Utc) -> BoxFuture<'_, Result<Census, BackendError>> {
        Box::pin(self.count(now))
    }
}
