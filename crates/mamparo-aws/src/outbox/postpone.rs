//! Moves what is due to a dependency together.

use std::ops::ControlFlow;

use futures_util::stream::{self, StreamExt as _};
use mamparo_durable::backend::{BackendError, Committed, PostponeDue, Step, Store as _};
use mamparo_durable::machine::{
    AuditEvent, Cause, Effect, Progress, Record, Schedule, State, TransactionId, Write,
};

use super::DynamoOutbox;
use crate::store::{Row, Walk};

/// As many are read and moved before the next.
const PAGE: usize = 100;

impl DynamoOutbox {
    /// Each in a step of its own: one that misses was fired or moved meanwhile, and is left to that.
    pub(super) async fn postpone_all(&self, due: PostponeDue) -> Result<u64, BackendError> {
        let mut moved = 0;
        for page in self.due(&due).await?.chunks(PAGE) {
            let mut records = Vec::with_capacity(page.len());
            for loaded in self.store.load(page.to_vec()).await {
                records.extend(loaded?.filter(|record| is_due(record, &due)));
            }
            let room = usize::try_from(due.limit - moved).unwrap_or(usize::MAX);
            records.truncate(room);
            let steps = stream::iter(records).map(|record| self.step(postponed(&record, &due)));
            let mut done = steps.buffer_unordered(self.store.in_flight());
            while let Some(committed) = done.next().await {
                moved += u64::from(matches!(committed?, Committed::Applied { .. }));
            }
            if moved >= due.limit {
                break;
            }
        }
        Ok(moved)
    }

    /// What may be due, the first first.
    async fn due(&self, due: &PostponeDue) -> Result<Vec<TransactionId>, BackendError> {
        let walk = Walk {
            state: State::Scheduled,
            until: due.due_before,
            page: usize::MAX,
        };
        let found = self.store.walk(walk, |rows: &mut Vec<Row>, row| {
            if row.dependency.as_ref() == Some(&due.dependency) {
                rows.push(row);
            }
            // Some of them may not be moved any more; half again as many are looked at.
            if rows.len() as u64 >= due.limit.saturating_add(due.limit / 2) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let mut rows: Vec<Row> = found.await?.into_iter().flatten().collect();
        rows.sort_by_key(|row| row.since);
        Ok(rows.into_iter().map(|row| row.id).collect())
    }
}

fn is_due(record: &Record, due: &PostponeDue) -> bool {
    let (terms, progress) = (&record.terms, &record.progress);
    progress.state == State::Scheduled
        && progress.next_fire_at.is_some_and(|at| at < due.due_before)
        && progress.postponements < terms.max_postponements
        && terms.give_up_at > due.now
}

/// As if its fire had found the breaker open, and all of that had been done: the new schedule is made before the old one goes.
fn postponed(record: &Record, due: &PostponeDue) -> Step {
    let from = &record.progress;
    let attempt = from.attempt_next.unwrap_or(from.attempt_current);
    let seq = from.schedule_seq.saturating_add(1);
    let fire_at = due.until.plus(due.spread.mul_f64(fastrand::f64()));
    let to = Progress {
        schedule_seq: seq,
        postponements: from.postponements.saturating_add(1),
        next_fire_at: Some(fire_at),
        updated_at: due.now,
        ..from.clone()
    };
    let event = AuditEvent {
        attempt,
        seq,
        fire_at: Some(fire_at),
        ..AuditEvent::new(due.now, Some(from.state), to.state, Cause::Postponed)
    };
    let mut step = Step::new(record.terms.id.clone());
    step.writes.push(Write::new(from.expect(), to, event));
    step.effects = vec![
        Effect::Schedule(Schedule {
            attempt,
            seq,
            fire_at,
        }),
        Effect::Unschedule {
            attempt,
            seq: from.schedule_seq,
        },
    ];
    step
}
