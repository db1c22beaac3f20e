//! What all requests to DynamoDB share.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use futures_util::stream::{self, StreamExt as _};
use mamparo_durable::backend::{BackendError, Trouble};
use mamparo_durable::machine::TransactionId;

use crate::connection::{Service, trouble};

/// As often is tried what others are in the way of, or what the service leaves of a batch.
const TRIES: u32 = 7;

/// The first wait in between, doubled each time: a second and a quarter in all.
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// The waits between tries, each somewhere between half and all of its length; as many as there are tries.
pub(crate) fn pauses() -> impl Iterator<Item = Duration> {
    (0..TRIES).map(|tried| (FIRST_WAIT * (1 << tried)).mul_f64(fastrand::f64().mul_add(0.5, 0.5)))
}

/// What an error of a request about a table means.
pub(crate) fn dynamo<E>(table: &str, error: SdkError<E, HttpResponse>) -> BackendError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    trouble(Service::DynamoDb, &format!("table {table}"), error)
}

/// What was to be asked lacks a part that the service needs: a mistake of this crate.
pub(crate) fn built<T>(built: Result<T, BuildError>) -> Result<T, BackendError> {
    built.map_err(|error| {
        BackendError::new(Trouble::Refused, "a request lacks what it needs").from_source(error)
    })
}

/// Does many things at once, but what is about one transaction in turn; returns what came of each, in their order.
pub(crate) async fn in_turn<T, R, F: Future<Output = R>>(
    all: impl IntoIterator<Item = (TransactionId, T)>,
    at_once: usize,
    work: impl Fn(TransactionId, T) -> F,
) -> Vec<R> {
    let mut turns: HashMap<TransactionId, Vec<(usize, T)>> = HashMap::new();
    for (place, (id, it)) in all.into_iter().enumerate() {
        turns.entry(id).or_default().push((place, it));
    }
    let work = &work;
    let turns = turns.into_iter().map(|(id, turns)| async move {
        let mut done = Vec::with_capacity(turns.len());
        for (place, it) in turns {
            done.push((place, work(id.clone(), it).await));
        }
        done
    });
    let turns: Vec<_> = turns.collect();
    let done = stream::iter(turns).buffer_unordered(at_once);
    let mut done: Vec<(usize, R)> = done.flat_map(stream::iter).collect().await;
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
