//! Shows a retry around a service that is no HTTP client, with a classifier of its own: a database's deadlock.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::fmt;

use mamparo::retry::{RetryError, RetryLayer, RetryPolicy};
use mamparo_core::{BoxError, CallContext, Classify, Kind, Plain, Resend, Verdict};
use tower::{ServiceBuilder, ServiceExt};

/// An error of a database, with its SQLSTATE.
#[derive(Debug)]
struct SqlError(&'static str);

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SQLSTATE {}", self.0)
    }
}

impl Error for SqlError {}

/// A deadlock's victim was rolled back, so it can run again; a broken constraint will be broken the next time too.
fn judge(outcome: Result<&u64, &BoxError>, verdict: Verdict) -> Verdict {
    match outcome.err().and_then(|error| error.downcast_ref()) {
        Some(SqlError("40P01" | "40001")) => Verdict::failure(Kind::Unavailable, Resend::Always),
        Some(SqlError(_)) => Verdict::failure(Kind::Client, Resend::Never),
        None => verdict,
    }
}

async fn transfer(from: &'static str) -> Result<u64, SqlError> {
    match (from, CallContext::current().attempt()) {
        ("nobody", _) => Err(SqlError("23503")),
        (_, 1) => Err(SqlError("40P01")),
        _ => Ok(42),
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let classifier = Classify::<u64>::refine(Plain::not_idempotent(), judge);
    let database = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::default(), classifier).dependency("ledger"))
        .service_fn(transfer);

    println!(
        "transferred as {}",
        database.clone().oneshot("alice").await?
    );
    let Err(error) = database.oneshot("nobody").await else {
        return Err("the constraint did not hold".into());
    };
    println!("{error}");
    assert_eq!(
        RetryError::of(&*error).map(|error| error.ending().attempts()),
        Some(1)
    );
    Ok(())
}
