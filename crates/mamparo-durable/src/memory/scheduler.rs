use super::Memory;
use crate::backend::{BackendError, BoxFuture, Created, Scheduler};
use crate::machine::{Schedule, TransactionId, schedule_name};

impl Scheduler for Memory {
    fn create(
        &self,
        schedules: Vec<(TransactionId, Schedule)>,
    ) -> BoxFuture<'_, Vec<Result<Created, BackendError>>> {
        Box::pin(async move {
            let created = {
                let mut world = self.world();
                let created = schedules
                    .into_iter()
                    .map(|(id, schedule)| Ok(world.schedule(id, schedule)));
                created.collect()
            };
            // After the change, or whoever wakes sees nothing of it.
            self.changed.notify_waiters();
            created
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
