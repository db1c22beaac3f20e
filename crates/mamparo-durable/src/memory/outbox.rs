use super::Memory;
use super::world::World;
use crate::backend::{BackendError, BoxFuture, Committed, Outbox, PostponeDue, Step};
use crate::machine::{AuditEvent, Cause, Effect, Progress, Record, Schedule, State, Write};

impl Outbox for Memory {
    fn commit(&self, steps: Vec<Step>) -> BoxFuture<'_, Vec<Result<Committed, BackendError>>> {
        Box::pin(async move {
            let now = self.now();
            let committed = {
                let mut world = self.world();
                steps
                    .into_iter()
                    .map(|step| Ok(world.commit(step, now)))
                    .collect()
            };
            self.changed.notify_waiters();
            committed
        })
    }

    fn postpone(&self, due: PostponeDue) -> BoxFuture<'_, Result<u64, BackendError>> {
        Box::pin(async move {
            let mut world = self.world();
            let steps: Vec<Step> = moves(&world, &due);
            let moved = steps.len() as u64;
            for step in steps {
                world.commit(step, due.now);
            }
            Ok(moved)
        })
    }
}

fn moves(world: &World, due: &PostponeDue) -> Vec<Step> {
    let limit = usize::try_from(due.limit).unwrap_or(usize::MAX);
    let records = world.transactions.values().map(|row| &row.record);
    records
        .filter(|record| is_moved(record, due))
        .take(limit)
        .map(|record| moved(record, due))
        .collect()
}

fn is_moved(record: &Record, due: &PostponeDue) -> bool {
    let Progress {
        state,
        postponements,
        next_fire_at,
        ..
    } = record.progress;
    record.terms.dependency.as_ref() == Some(&due.dependency)
        && state == State::Scheduled
        && next_fire_at.is_some_and(|fire_at| fire_at < due.due_before)
        && postponements < record.terms.max_postponements
        && due.now < record.terms.give_up_at
}

fn moved(record: &Record, due: &PostponeDue) -> Step {
    let from = &record.progress;
    let fire_at = due.until.plus(due.spread.mul_f64(fastrand::f64()));
    let to = Progress {
        schedule_seq: from.schedule_seq.saturating_add(1),
        postponements: from.postponements.saturating_add(1),
        next_fire_at: Some(fire_at),
        updated_at: due.now,
        ..from.clone()
    };
    let attempt = to.attempt_next.unwrap_or(to.attempt_current);
    let (seq, before) = (to.schedule_seq, from.schedule_seq);
    let event = AuditEvent {
        attempt,
        seq,
        fire_at: Some(fire_at),
        ..AuditEvent::new(due.now, Some(from.state), to.state, Cause::Postponed)
    };
    let mut step = Step::new(record.terms.id.clone());
    step.writes.push(Write::new(from.expect(), to, event));
    step.effects.push(Effect::Schedule(Schedule {
        attempt,
        seq,
        fire_at,
    }));
    step.effects.push(Effect::Unschedule {
        attempt,
        seq: before,
    });
    step
}
