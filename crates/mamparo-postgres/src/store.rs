//! The store's trait.

use bytes::Bytes;
use mamparo_durable::backend::{
    BackendError, Begun, BoxFuture, Census, Committed, Filter, NewTransaction, Step, Store, Written,
};
use mamparo_durable::machine::{AuditEvent, Patience, Record, TransactionId, Utc, Write};

use crate::Postgres;
use crate::database::corrupt;
use crate::write::{Done, Wanted};
use crate::{forget, read};

impl Store for Postgres {
    fn begin(&self, new: NewTransaction) -> BoxFuture<'_, Result<Begun, BackendError>> {
        Box::pin(async move {
            let mut step = Step::new(new.record.terms.id.clone());
            step.begin = Some(new);
            match committed(self.desk().write(Wanted::Step(Box::new(step))).await)? {
                Committed::Applied { .. } => Ok(Begun::New),
                Committed::Missed(Some(there)) => Ok(Begun::Exists(there)),
                Committed::Missed(None) => Err(corrupt(
                    "a transaction was stored and is gone; look who deletes rows",
                )),
            }
        })
    }

    fn load(
        &self,
        ids: Vec<TransactionId>,
    ) -> BoxFuture<'_, Vec<Result<Option<Record>, BackendError>>> {
        Box::pin(self.loads().load(ids))
    }

    fn request(&self, id: TransactionId) -> BoxFuture<'_, Result<Option<Bytes>, BackendError>> {
        Box::pin(read::request(self.database(), id))
    }

    fn write(
        &self,
        writes: Vec<(TransactionId, Write)>,
    ) -> BoxFuture<'_, Vec<Result<Written, BackendError>>> {
        Box::pin(async move {
            let wanted = writes.into_iter().map(|(id, write)| {
                let mut step = Step::new(id);
                step.writes.push(write);
                Wanted::Step(Box::new(step))
            });
            let done = self.desk().write_all(wanted).await;
            let written = done.into_iter().map(|done| {
                Ok(match committed(done)? {
                    Committed::Applied { .. } => Written::Applied,
                    Committed::Missed(stored) => Written::Missed(stored),
                })
            });
            written.collect()
        })
    }

    fn history(
        &self,
        id: TransactionId,
        skip: usize,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AuditEvent>, BackendError>> {
        Box::pin(read::history(self.database(), id, skip, limit))
    }

    fn stuck(
        &self,
        now: Utc,
        patience: Patience,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>> {
        Box::pin(read::stuck(self.database(), now, patience, limit))
    }

    fn list(
        &self,
        filter: Filter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>> {
        Box::pin(read::list(self.database(), filter, limit))
    }

    fn forget(&self, ended_by: Utc, limit: usize) -> BoxFuture<'_, Result<u64, BackendError>> {
        Box::pin(forget::forget(self.database(), ended_by, limit))
    }

    fn census(&self, now: Utc) -> BoxFuture<'_, Result<Census, BackendError>> {
        Box::pin(read::census(self.database(), now))
    }
}

/// What came of a step.
pub(crate) fn committed(done: Result<Done, BackendError>) -> Result<Committed, BackendError> {
    match done? {
        Done::Committed(committed) => Ok(committed),
        other => Err(corrupt(format!("a step ended as {other:?}"))),
    }
}
