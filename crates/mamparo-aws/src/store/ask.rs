//! What people and the reconciler ask.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use futures_util::future::try_join_all;
use mamparo_durable::backend::{BackendError, Census, Count, Filter};
use mamparo_durable::machine::{Patience, Progress, Record, State, TransactionId, Utc};

use super::{DynamoStore, Row, Walk};

/// As many are read from the table at once, of what the index says.
const LOADED_AT_ONCE: usize = 100;

/// The states that a transaction may be stuck in.
const LIVE: [State; 4] = [
    State::InFlight,
    State::Scheduling,
    State::Scheduled,
    State::Sending,
];

impl DynamoStore {
    pub(super) async fn find_stuck(
        &self,
        now: Utc,
        patience: Patience,
        limit: usize,
    ) -> Result<Vec<Record>, BackendError> {
        let states = LIVE.map(|state| (state, before(now, patience, state)));
        let walks = states.map(|(state, until)| self.old(state, until, limit));
        let mut rows: Vec<Row> = try_join_all(walks).await?.into_iter().flatten().collect();
        rows.sort_by_key(|row| row.since);
        let mut stuck = Vec::new();
        for some in rows.chunks(LOADED_AT_ONCE) {
            let ids: Vec<TransactionId> = some.iter().map(|row| row.id.clone()).collect();
            let still = |progress: &Progress| {
                let mut of_state = states.iter().filter(|(state, _)| *state == progress.state);
                of_state.any(|(_, until)| is_old(progress, *until))
            };
            let loaded = self.readable(&ids).await?;
            stuck.extend(loaded.into_iter().filter(|record| still(&record.progress)));
            if stuck.len() >= limit {
                break;
            }
        }
        stuck.truncate(limit);
        Ok(stuck)
    }

    async fn old(&self, state: State, until: Utc, limit: usize) -> Result<Vec<Row>, BackendError> {
        let page = limit.max(1);
        let walk = Walk { state, until, page };
        let found = self.walk(walk, |rows: &mut Vec<Row>, row| {
            // Of what was due long ago some was fired again just now.
            if row.updated_at <= until {
                rows.push(row);
            }
            full(rows.len(), limit)
        });
        Ok(found.await?.into_iter().flatten().collect())
    }

    /// Reads transactions; what can't be read is left out, and so is what is gone.
    async fn readable(&self, ids: &[TransactionId]) -> Result<Vec<Record>, BackendError> {
        let mut records = Vec::with_capacity(ids.len());
        for loaded in self.load_all(ids).await {
            match loaded {
                Ok(record) => records.extend(record),
                Err(error) if error.is_transient() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(records)
    }

    /// Of what the index has, the first by id that fit; each page walks through all of the states that are asked for.
    pub(super) async fn find_listed(
        &self,
        mut filter: Filter,
        limit: usize,
    ) -> Result<Vec<Record>, BackendError> {
        let mut listed = Vec::new();
        while listed.len() < limit {
            let wanted = limit - listed.len();
            let ids = self.first_ids(&filter, wanted).await?;
            let found = self.readable(&ids).await?;
            let in_state = |record: &Record| {
                filter
                    .state
                    .is_none_or(|state| state == record.progress.state)
            };
            listed.extend(found.into_iter().filter(in_state));
            if ids.len() < wanted {
                break;
            }
            // Some have moved on since the index knew of them.
            filter.after = ids.last().cloned();
        }
        Ok(listed)
    }

    async fn first_ids(
        &self,
        filter: &Filter,
        limit: usize,
    ) -> Result<Vec<TransactionId>, BackendError> {
        let states = filter
            .state
            .map_or(State::ALL.to_vec(), |state| vec![state]);
        let walks = states.into_iter().map(|state| {
            self.walk(
                Walk::all(state),
                move |first: &mut BTreeMap<TransactionId, ()>, row| {
                    if fits(filter, &row) {
                        first.insert(row.id, ());
                    }
                    if first.len() > limit {
                        first.pop_last();
                    }
                    ControlFlow::Continue(())
                },
            )
        });
        let found = try_join_all(walks).await?;
        let all: BTreeMap<TransactionId, ()> = found.into_iter().flatten().flatten().collect();
        Ok(all.into_keys().take(limit).collect())
    }

    pub(super) async fn count(&self, now: Utc) -> Result<Census, BackendError> {
        let walks = State::ALL.map(|state| async move {
            let counted = self.walk(Walk::all(state), move |counted: &mut Counted, row| {
                counted.add(state, &row, now);
                ControlFlow::Continue(())
            });
            counted.await
        });
        let mut sum = Counted::default();
        for counted in try_join_all(walks).await?.into_iter().flatten() {
            sum.take(counted);
        }
        let mut census = Census::default();
        let counts = sum.counts.into_iter();
        census.counts = counts
            .map(|((state, attempt), transactions)| Count {
                state,
                attempt,
                transactions,
            })
            .collect();
        (census.oldest, census.overdue_since) = (sum.oldest, sum.overdue_since);
        census.overdue = sum.overdue;
        Ok(census)
    }
}

/// What was written then has been so for that long. Without any patience everything has, whatever a clock does.
fn before(now: Utc, patience: Patience, state: State) -> Utc {
    let patience = match state {
        State::Scheduling => patience.scheduling,
        State::Scheduled => patience.scheduled,
        State::Sending => patience.sending,
        _ => patience.in_flight,
    };
    if patience < Duration::from_millis(1) {
        return Utc::MAX;
    }
    now.minus(patience)
}

fn is_old(progress: &Progress, until: Utc) -> bool {
    let due = progress
        .next_fire_at
        .filter(|_| progress.state == State::Scheduled);
    progress.updated_at <= until && due.is_none_or(|due| due <= until)
}

pub(super) const fn full(found: usize, limit: usize) -> ControlFlow<()> {
    if found < limit {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

fn fits(filter: &Filter, row: &Row) -> bool {
    let after = filter.after.as_ref().is_none_or(|after| row.id > *after);
    let kind = filter.kind.as_ref().is_none_or(|kind| row.kind == *kind);
    let dependency = filter.dependency.is_none() || row.dependency == filter.dependency;
    after && kind && dependency
}

/// What a walk counts.
#[derive(Debug, Default)]
struct Counted {
    counts: BTreeMap<(State, u32), u64>,
    oldest: Option<Utc>,
    overdue_since: Option<Utc>,
    overdue: u64,
}

impl Counted {
    fn add(&mut self, state: State, row: &Row, now: Utc) {
        *self.counts.entry((state, row.attempt)).or_default() += 1;
        if state.is_terminal() {
            return;
        }
        self.oldest = earlier(self.oldest, Some(row.created_at));
        let due = row
            .next_fire_at
            .filter(|due| state.is_waiting() && *due < now);
        self.overdue_since = earlier(self.overdue_since, due);
        self.overdue += u64::from(due.is_some());
    }

    fn take(&mut self, other: Self) {
        for (of, transactions) in other.counts {
            *self.counts.entry(of).or_default() += transactions;
        }
        self.oldest = earlier(self.oldest, other.oldest);
        self.overdue_since = earlier(self.overdue_since, other.overdue_since);
        self.overdue += other.overdue;
    }
}

fn earlier(one: Option<Utc>, other: Option<Utc>) -> Option<Utc> {
    one.into_iter().chain(other).min()
}
