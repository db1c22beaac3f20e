//! The transactions and their history.

use bytes::Bytes;
use mamparo_durable::backend::{
    BackendError, Begun, BoxFuture, Census, Filter, NewTransaction, Store, Written,
};
use mamparo_durable::machine::{AuditEvent, Patience, Record, TransactionId, Utc, Write};
use rusqlite::OptionalExtension;

use super::SqliteDurable;
use super::error::{each, one_by_one};
use super::{forget, queries, row, step};

impl Store for SqliteDurable {
    fn begin(&self, new: NewTransaction) -> BoxFuture<'_, Result<Begun, BackendError>> {
        Box::pin(async move {
            let begin = self.write(move |file, _| {
                if row::insert(file, &new, &new.record.progress)?.is_some() {
                    return Ok(Begun::New);
                }
                let there = row::find(file, &new.record.terms.id)?;
                Ok(there.map_or(Begun::New, Begun::Exists))
            });
            begin.await.map_err(|failed| failed.0)
        })
    }

    fn load(
        &self,
        ids: Vec<TransactionId>,
    ) -> BoxFuture<'_, Vec<Result<Option<Record>, BackendError>>> {
        Box::pin(async move {
            let count = ids.len();
            let load =
                self.read(move |file| Ok(ids.iter().map(|id| row::find(file, id)).collect()));
            each(count, load.await)
        })
    }

    fn request(&self, id: TransactionId) -> BoxFuture<'_, Result<Option<Bytes>, BackendError>> {
        Box::pin(async move {
            let request = self.read(move |file| {
                let mut asked = file.prepare_cached(queries::BODY)?;
                let body = asked.query_row([id.as_str()], |row| row.get::<_, Vec<u8>>(0));
                Ok(body.optional()?.map(Bytes::from))
            });
            request.await.map_err(|failed| failed.0)
        })
    }

    fn write(
        &self,
        writes: Vec<(TransactionId, Write)>,
    ) -> BoxFuture<'_, Vec<Result<Written, BackendError>>> {
        Box::pin(async move {
            let count = writes.len();
            let write = self.write(move |file, _| {
                let write = |(id, write): &_| step::write(file, id, write);
                one_by_one(file, writes.iter().map(write))
            });
            each(count, write.await)
        })
    }

    fn history(
        &self,
        id: TransactionId,
        skip: usize,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AuditEvent>, BackendError>> {
        Box::pin(async move {
            let history = self.read(move |file| queries::history(file, &id, skip, limit));
            history.await.map_err(|failed| failed.0)
        })
    }

    fn stuck(
        &self,
        now: Utc,
        patience: Patience,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>> {
        Box::pin(async move {
            let stuck = self.read(move |file| queries::stuck(file, now, patience, limit));
            stuck.await.map_err(|failed| failed.0)
        })
    }

    fn list(
        &self,
        filter: Filter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>> {
        Box::pin(async move {
            let list = self.read(move |file| queries::list(file, &filter, limit));
            list.await.map_err(|failed| failed.0)
        })
    }

    fn forget(&self, ended_by: Utc, limit: usize) -> BoxFuture<'_, Result<u64, BackendError>> {
        Box::pin(async move {
            // Where there is nothing, nobody has to wait for a write.
            let any = self.read(move |file| forget::find(file, ended_by, 1));
            if any.await.map_err(|failed| failed.0)?.is_empty() {
                return Ok(0);
            }
            let forget = self.write(move |file, _| forget::all(file, ended_by, limit));
            forget.await.map_err(|failed| failed.0)
        })
    }

    fn census(&self, now: Utc) -> BoxFuture<'_, Result<Census, BackendError>> {
        Box::pin(async move {
            let census = self.read(move |file| queries::census(file, now));
            census.await.map_err(|failed| failed.0)
        })
    }
}
