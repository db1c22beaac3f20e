//! What all requests to DynamoDB share.

use std::error::Error;
use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use mamparo_durable::backend::{BackendError, Trouble};

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
