use bytes::Bytes;

use super::Memory;
use crate::backend::{
    BackendError, Begun, BoxFuture, Census, Count, Filter, NewTransaction, Store, Written,
};
use crate::machine::{AuditEvent, Patience, Progress, Record, State, TransactionId, Utc, Write};

impl Store for Memory {
    fn begin(&self, new: NewTransaction) -> BoxFuture<'_, Result<Begun, BackendError>> {
        Box::pin(async move { Ok(self.world().begin(new)) })
    }

    fn load(
        &self,
        ids: Vec<TransactionId>,
    ) -> BoxFuture<'_, Vec<Result<Option<Record>, BackendError>>> {
        Box::pin(async move {
            let world = self.world();
            let row = |id| world.transactions.get(id).map(|row| row.record.clone());
            ids.iter().map(|id| Ok(row(id))).collect()
        })
    }

    fn request(&self, id: TransactionId) -> BoxFuture<'_, Result<Option<Bytes>, BackendError>> {
        Box::pin(async move {
            Ok(self
                .world()
                .transactions
                .get(&id)
                .map(|row| row.request.clone()))
        })
    }

    fn write(
        &self,
        writes: Vec<(TransactionId, Write)>,
    ) -> BoxFuture<'_, Vec<Result<Written, BackendError>>> {
        Box::pin(async move {
            let mut world = self.world();
            writes
                .into_iter()
                .map(|(id, write)| Ok(world.write(&id, write)))
                .collect()
        })
    }

    fn history(
        &self,
        id: TransactionId,
        skip: usize,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AuditEvent>, BackendError>> {
        Box::pin(async move {
            let world = self.world();
            let history = world
                .transactions
                .get(&id)
                .map(|row| row.history.iter().skip(skip).take(limit));
            Ok(history.into_iter().flatten().cloned().collect())
        })
    }

    fn stuck(
        &self,
        now: Utc,
        patience: Patience,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>> {
        Box::pin(async move {
            let world = self.world();
            let records = world.transactions.values().map(|row| &row.record);
            let mut stuck: Vec<&Record> = records
                .filter(|record| is_stuck(&record.progress, now, patience))
                .collect();
            stuck.sort_by_key(|record| record.progress.updated_at);
            Ok(stuck.into_iter().take(limit).cloned().collect())
        })
    }

    fn list(
        &self,
        filter: Filter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>> {
        Box::pin(async move {
            let world = self.world();
            let records = world.transactions.values().map(|row| &row.record);
            Ok(records
                .filter(|record| fits(record, &filter))
                .take(limit)
                .cloned()
                .collect())
        })
    }

    fn forget(&self, ended_by: Utc, limit: usize) -> BoxFuture<'_, Result<u64, BackendError>> {
        Box::pin(async move { Ok(self.world().forget(ended_by, limit)) })
    }

    fn census(&self, now: Utc) -> BoxFuture<'_, Result<Census, BackendError>> {
        Box::pin(async move {
            let world = self.world();
            let mut census = Census::default();
            for record in world.transactions.values().map(|row| &row.record) {
                count(&mut census, record, now);
            }
            census.counts.sort_unstable();
            Ok(census)
        })
    }
}

fn is_stuck(progress: &Progress, now: Utc, patience: Patience) -> bool {
    let since_write = now.since(progress.updated_at);
    match progress.state {
        State::InFlight => since_write >= patience.in_flight,
        State::Scheduling => since_write >= patience.scheduling,
        State::Sending => since_write >= patience.sending,
        State::Scheduled => {
            since_write >= patience.scheduled
                && progress
                    .next_fire_at
                    .is_some_and(|due| now >= due.plus(patience.scheduled))
        }
        State::Succeeded | State::Failed => false,
    }
}

fn fits(record: &Record, filter: &Filter) -> bool {
    let terms = &record.terms;
    filter
        .state
        .is_none_or(|state| record.progress.state == state)
        && filter.kind.as_ref().is_none_or(|kind| terms.kind == *kind)
        && (filter.dependency.is_none() || terms.dependency == filter.dependency)
        && filter.after.as_ref().is_none_or(|after| terms.id > *after)
}

fn count(census: &mut Census, record: &Record, now: Utc) {
    let Progress {
        state,
        attempt_current: attempt,
        next_fire_at,
        ..
    } = record.progress;
    let known = census
        .counts
        .iter_mut()
        .find(|count| (count.state, count.attempt) == (state, attempt));
    match known {
        Some(count) => count.transactions += 1,
        None => census.counts.push(Count {
            state,
            attempt,
            transactions: 1,
        }),
    }
    let begun = Some(record.terms.created_at).filter(|_| !state.is_terminal());
    census.oldest = begun.into_iter().chain(census.oldest).min();
    let overdue = next_fire_at.filter(|due| state.is_waiting() && *due < now);
    census.overdue += u64::from(overdue.is_some());
    census.overdue_since = overdue.into_iter().chain(census.overdue_since).min();
}
