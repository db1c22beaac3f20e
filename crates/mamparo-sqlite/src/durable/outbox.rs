//! Whole steps.

use mamparo_durable::backend::{BackendError, BoxFuture, Committed, Outbox, PostponeDue, Step};

use super::SqliteDurable;
use super::error::{each, one_by_one};
use super::postpone;
use super::step;

impl Outbox for SqliteDurable {
    fn commit(&self, steps: Vec<Step>) -> BoxFuture<'_, Vec<Result<Committed, BackendError>>> {
        Box::pin(async move {
            let count = steps.len();
            let commit = self.write(move |file, this| {
                let now = this.now();
                let commit = |step| step::commit(file, step, now, this.wakes());
                one_by_one(file, steps.iter().map(commit))
            });
            each(count, commit.await)
        })
    }

    /// A part at a time, so that others write in between. What moved on since it was read is left alone.
    fn postpone(&self, due: PostponeDue) -> BoxFuture<'_, Result<u64, BackendError>> {
        Box::pin(async move {
            let wanted = due.clone();
            let found = self.read(move |file| postpone::find(file, &wanted));
            let found = found.await.map_err(|failed| failed.0)?;
            let mut moved = 0;
            for part in found {
                let due = due.clone();
                let part =
                    self.write(move |file, this| postpone::all(file, &part, &due, this.wakes()));
                moved += part.await.map_err(|failed| failed.0)?;
            }
            Ok(moved)
        })
    }
}
