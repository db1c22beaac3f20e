//! Which steps apply, and what is stored where one doesn't.

use std::collections::{HashMap, HashSet};

use mamparo_durable::backend::{BackendError, Committed, Step};
use mamparo_durable::machine::{Progress, Record};
use sqlx::postgres::PgConnection;
use sqlx::{Error, query, query_scalar};

use super::rows::{BeginRows, TransitRows};
use super::statements;
use crate::read::{LOAD, record};

/// What came of a step's conditions: it applies, or what is stored instead.
pub(super) type Checked = Result<Option<Committed>, BackendError>;

/// Writes the transactions of these steps where they are as expected. Returns, for each, `None` if it applies.
pub(super) async fn check(
    connection: &mut PgConnection,
    steps: &[&Step],
) -> Result<Vec<Checked>, Error> {
    let mut applies = vec![false; steps.len()];
    let mut kinds = Kinds::default();
    for (place, step) in steps.iter().enumerate() {
        kinds.add(place, step);
    }
    let begun = begin(connection, steps, &kinds.begin).await?;
    for (place, _) in &kinds.begin {
        applies[*place] = begun.contains(steps[*place].id.as_str());
    }
    for place in transit(connection, steps, &kinds.transit).await? {
        applies[place] = true;
    }
    for place in stored(connection, steps, &kinds.neither).await? {
        applies[place] = true;
    }
    let missed: Vec<&str> = (0..steps.len())
        .filter(|place| !applies[*place])
        .map(|place| steps[place].id.as_str())
        .collect();
    let mut there = load(connection, &missed).await?;
    let checked = applies.iter().zip(steps).map(|(applies, step)| {
        if *applies {
            return Ok(None);
        }
        let stored = there.remove(step.id.as_str()).transpose()?;
        Ok(Some(Committed::Missed(stored)))
    });
    Ok(checked.collect())
}

/// What a step does to its transaction, and how it stands after that.
#[derive(Default)]
struct Kinds<'a> {
    begin: Vec<(usize, &'a Progress)>,
    transit: Vec<(usize, &'a Progress)>,
    /// Effects alone; the transaction must be there.
    neither: Vec<usize>,
}

impl<'a> Kinds<'a> {
    fn add(&mut self, place: usize, step: &'a Step) {
        let begun = step.begin.as_ref().map(|new| &new.record.progress);
        let Some(stands) = last(begun, step) else {
            return;
        };
        match (&step.begin, stands) {
            (Some(_), Some(stands)) => self.begin.push((place, stands)),
            (None, Some(stands)) => self.transit.push((place, stands)),
            (_, None) => self.neither.push(place),
        }
    }
}

/// How a transaction stands after a step, if each of its writes expects what the one before it wrote; else it misses.
fn last<'a>(begun: Option<&'a Progress>, step: &'a Step) -> Option<Option<&'a Progress>> {
    let mut stands = begun;
    for write in &step.writes {
        if stands.is_some_and(|stands| stands.expect() != write.expect) {
            return None;
        }
        stands = Some(&write.to);
    }
    Some(stands)
}

async fn begin(
    connection: &mut PgConnection,
    steps: &[&Step],
    begin: &[(usize, &Progress)],
) -> Result<HashSet<String>, Error> {
    let mut rows = BeginRows::default();
    for (place, stands) in begin {
        if let Some(new) = &steps[*place].begin {
            rows.push(new, stands);
        }
    }
    if begin.is_empty() {
        return Ok(HashSet::new());
    }
    Ok(rows.write(connection).await?.into_iter().collect())
}

async fn transit(
    connection: &mut PgConnection,
    steps: &[&Step],
    transit: &[(usize, &Progress)],
) -> Result<Vec<usize>, Error> {
    let mut rows = TransitRows::default();
    for (place, stands) in transit {
        let step = steps[*place];
        if let Some(first) = step.writes.first() {
            rows.push(&step.id, first.expect, stands);
        }
    }
    if transit.is_empty() {
        return Ok(Vec::new());
    }
    let applied = rows.write(connection).await?;
    Ok(applied
        .into_iter()
        .filter_map(|row| Some(transit.get(row)?.0))
        .collect())
}

async fn stored(
    connection: &mut PgConnection,
    steps: &[&Step],
    neither: &[usize],
) -> Result<Vec<usize>, Error> {
    if neither.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<&str> = neither
        .iter()
        .map(|place| steps[*place].id.as_str())
        .collect();
    let found: HashSet<String> = query_scalar(statements::STORED)
        .bind(ids)
        .fetch_all(connection)
        .await?
        .into_iter()
        .collect();
    let is_stored = |place: &usize| found.contains(steps[*place].id.as_str());
    Ok(neither.iter().copied().filter(is_stored).collect())
}

async fn load(
    connection: &mut PgConnection,
    ids: &[&str],
) -> Result<HashMap<String, Result<Record, BackendError>>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = query(LOAD).bind(ids).fetch_all(connection).await?;
    rows.iter().map(record).collect()
}
