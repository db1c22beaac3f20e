//! The scheduler: schedules lie among the fires, and are taken like them once they are due.

use mamparo_durable::backend::{BackendError, BoxFuture, Created, Scheduler};
use mamparo_durable::machine::{Schedule, TransactionId};

use super::SqliteDurable;
use super::error::{each, one_by_one};
use super::message;

impl Scheduler for SqliteDurable {
    fn create(
        &self,
        schedules: Vec<(TransactionId, Schedule)>,
    ) -> BoxFuture<'_, Vec<Result<Created, BackendError>>> {
        Box::pin(async move {
            let count = schedules.len();
            let create = self.write(move |file, this| {
                let create =
                    |(id, schedule): &_| message::schedule(file, id, schedule, this.wakes());
                one_by_one(file, schedules.iter().map(create))
            });
            each(count, create.await)
        })
    }

    fn delete(
        &self,
        id: TransactionId,
        attempt: u32,
        seq: u32,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let delete = self.write(move |file, _| message::unschedule(file, &id, attempt, seq));
            delete.await.map_err(|failed| failed.0)
        })
    }
}
