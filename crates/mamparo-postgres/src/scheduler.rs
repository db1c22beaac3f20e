//! The scheduler's trait: a schedule is a fire that is not ready yet.

use mamparo_durable::backend::{BackendError, BoxFuture, Created, Scheduler};
use mamparo_durable::machine::{Schedule, TransactionId};

use crate::Postgres;
use crate::database::corrupt;
use crate::write::{Done, Wanted};

impl Scheduler for Postgres {
    fn create(
        &self,
        schedules: Vec<(TransactionId, Schedule)>,
    ) -> BoxFuture<'_, Vec<Result<Created, BackendError>>> {
        Box::pin(async move {
            let wanted = schedules
                .into_iter()
                .map(|(id, schedule)| Wanted::Create(id, schedule));
            let done = self.desk().write_all(wanted).await;
            let created = done.into_iter().map(|done| match done? {
                Done::Created(created) => Ok(created),
                other => Err(corrupt(format!("a schedule ended as {other:?}"))),
            });
            created.collect()
        })
    }

    fn delete(
        &self,
        id: TransactionId,
        attempt: u32,
        seq: u32,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            self.desk()
                .write(Wanted::Delete { id, attempt, seq })
                .await
                .map(drop)
        })
    }
}
