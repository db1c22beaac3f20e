use super::Memory;
use crate::backend::{BackendError, BoxFuture, Created, Scheduler};
use crate::machine::{Schedule, TransactionId, schedule_name};

impl Scheduler for Memory {
    fn create(
        &self,
        schedules: Vec<(TransactionId, Schedule)>,
    ) -> BoxFuture<'_, Vec<Result<Created, BackendError>>> {
        Box::pin(async move {
            self.changed.notify_waiters();
            let mut world = self.world();
            schedules
                .into_iter()
                .map(|(id, schedule)| Ok(world.schedule(id, schedule)))
                .collect()
        })
    }

    fn delete(
        &self,
        id: TransactionId,
        attempt: u32,
        seq: u32,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            self.world().unschedule(&schedule_name(&id, attempt, seq));
            Ok(())
        })
    }
}
