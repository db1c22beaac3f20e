//! The index by state, read page by page.

use std::ops::ControlFlow;

use futures_util::future::try_join_all;
use mamparo_durable::backend::BackendError;
use mamparo_durable::machine::{Label, State, TransactionId, Utc};

use super::item::{
    Item, Nonsense, count, id, instant, maybe_instant, maybe_label, named, number, text,
};
use super::schema::{
    ATTEMPT_CURRENT, BY_STATE, CREATED_AT, DEPENDENCY, KIND, NEXT_FIRE_AT, PLACE, SHARDS, SINCE,
    UPDATED_AT, place,
};
use super::{DynamoStore, dynamo};

/// What the index says of a transaction; it may be a little late.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) id: TransactionId,
    pub(crate) since: Utc,
    pub(crate) attempt: u32,
    pub(crate) kind: Label,
    pub(crate) dependency: Option<Label>,
    pub(crate) created_at: Utc,
    pub(crate) updated_at: Utc,
    pub(crate) next_fire_at: Option<Utc>,
}

impl Row {
    fn read(item: &Item) -> Result<Self, Nonsense> {
        Ok(Self {
            id: id(item)?,
            since: instant(item, SINCE)?,
            attempt: count(item, ATTEMPT_CURRENT)?,
            kind: named(item, KIND, |kind| Some(Label::from(kind)))?,
            dependency: maybe_label(item, DEPENDENCY)?,
            created_at: instant(item, CREATED_AT)?,
            updated_at: instant(item, UPDATED_AT)?,
            next_fire_at: maybe_instant(item, NEXT_FIRE_AT)?,
        })
    }
}

/// A walk through one state, the oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(crate) state: State,
    /// Only what is there since then or before.
    pub(crate) until: Utc,
    /// As many are read at once; a MiB of them at most.
    pub(crate) page: usize,
}

impl Walk {
    /// Through all of a state.
    pub(crate) const fn all(state: State) -> Self {
        Self {
            state,
            until: Utc::MAX,
            page: usize::MAX,
        }
    }
}

impl DynamoStore {
    /// Walks through all shards at once; each gathers into a value of its own, until it has enough.
    ///
    /// What can't be read is left out: whoever loads it hears of it.
    pub(crate) async fn walk<A: Default>(
        &self,
        walk: Walk,
        gather: impl Fn(&mut A, Row) -> ControlFlow<()>,
    ) -> Result<Vec<A>, BackendError> {
        try_join_all((0..SHARDS).map(|shard| self.walk_shard(walk, shard, &gather))).await
    }

    async fn walk_shard<A: Default>(
        &self,
        walk: Walk,
        shard: u64,
        gather: &impl Fn(&mut A, Row) -> ControlFlow<()>,
    ) -> Result<A, BackendError> {
        let (mut gathered, mut from) = (A::default(), None);
        loop {
            let asked = self
                .client()
                .query()
                .table_name(self.table())
                .index_name(BY_STATE)
                .key_condition_expression(format!("{PLACE} = :place AND {SINCE} <= :until"))
                .expression_attribute_values(":place", text(place(walk.state, shard)))
                .expression_attribute_values(":until", number(walk.until.millis()))
                .set_limit(i32::try_from(walk.page).ok())
                .set_exclusive_start_key(from);
            let page = asked
                .send()
                .await
                .map_err(|error| dynamo(self.table(), error))?;
            let rows = page.items.unwrap_or_default();
            for row in rows.iter().filter_map(|item| Row::read(item).ok()) {
                if gather(&mut gathered, row).is_break() {
                    return Ok(gathered);
                }
            }
            from = page.last_evaluated_key.filter(|key| !key.is_empty());
            if from.is_none() {
                return Ok(gathered);
            }
        }
    }
}
