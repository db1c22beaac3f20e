//! Recognises requests by their idempotency keys, and answers a repeated one as the first, without running it again.
//!
//! A caller that got no answer may send its request again with the same key (draft-ietf-httpapi-idempotency-key-header-07).
//! The layer runs the first, stores its answer, and gives that to every other: byte for byte, with
//! `idempotent-replayed: true`. It serves HTTP and gRPC, each in its own words, and stands inside of whatever may refuse a
//! request: deadlines, limits, authentication.
//!
//! # Life of a key
//!
//! A key is one principal's: see [`IdempotencyPolicy::per_principal`].
//!
//! - *absent*: its request is run, under a lease that is renewed as long as it runs;
//! - *started*: another request with it gets 409 and Retry-After;
//! - *lease over*: its runner is gone without a word; by [`OnExpiry`] it is run again, or answered with 500: nobody knows
//!   whether it took effect;
//! - *completed*: the stored answer is given again;
//! - past its *retention*: absent again.
//!
//! The same key with another method, path, query, body or chosen header gets 422, whatever its state. A key that is missing where it is
//! required, or malformed, gets 400. What is refused is [told](mamparo_core::What::Key) to the observer, and never run.
//!
//! # What is promised
//!
//! - Never are two handlers of one key at work, unless one has let its lease run out and [`OnExpiry::RunAgain`] is set; that
//!   one's answer then changes nothing.
//! - A crash between a handler's effect and its answer's record leaves a key whose lease runs out: only a handler that
//!   completes the key in its own transaction ([`IdempotencyTx`]) is safe to run again.
//! - A caller that goes away does not stop its run: a task finishes it, so that the next attempt finds the answer. See
//!   [`IdempotencyBuilder::left_behind`]. It then runs outside of its caller's deadline.
//! - A handler that panics, or a service that fails with an error instead of a response, leaves its lease to end at once.
//!   Where nothing was run (a [`Rejection`](mamparo_core::Rejection) that was not sent, or [`NotRun`]) the key is forgotten.
//! - The body of the request is read before the handler is called, and that of the answer before the caller gets it, each up
//!   to a bound. A larger one is served; its key is then completed without an answer, and a repetition gets 409.
//!
//! # Refusals
//!
//! Each has its type of problem, `https://docs.rs/mamparo/latest/mamparo/idempotency/index.html#` and these names.
//!
//! ## idempotency-key-missing
//!
//! Status 400. The request needs a key and has none.
//!
//! ## idempotency-key-malformed
//!
//! Status 400. The key can't be read, is too long, or is sent more than once.
//!
//! ## idempotency-key-without-owner
//!
//! Status 403. Nobody can tell whose key it is.
//!
//! ## idempotency-key-in-progress
//!
//! Status 409, with Retry-After. The first request with this key is being processed: ask again with the same key.
//!
//! ## idempotency-key-reused
//!
//! Status 422. The key belongs to another request: make a new one for each operation.
//!
//! ## idempotency-answer-not-kept
//!
//! Status 409. The request was processed, and its answer is not there to be given again.
//!
//! ## idempotency-outcome-indeterminate
//!
//! Status 500, or 409. Processing the request was begun, and nobody knows whether it took effect.
//!
//! ## idempotency-store-unavailable
//!
//! Status 503, with Retry-After. The keys can't be checked now, and the request was not processed.
//!
//! # When not
//!
//! For methods that are idempotent by themselves, and for streams: of gRPC, only unary calls should carry a key.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Full};
//! use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy, MemoryStore};
//! use std::convert::Infallible;
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo_core::BoxError> {
//! static CHARGES: AtomicU32 = AtomicU32::new(0);
//! let policy = IdempotencyPolicy::for_all_callers().build()?;
//! let server = ServiceBuilder::new()
//!     .layer(IdempotencyLayer::new(MemoryStore::new(), policy))
//!     .service_fn(async |_: Request<_>| {
//!         let number = CHARGES.fetch_add(1, Ordering::Relaxed) + 1;
//!         Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(format!("charge {number}")))))
//!     });
//! for replayed in [false, true] {
//!     let request = Request::post("/charges").header("idempotency-key", "\"8e03978e\"");
//!     let response = server.clone().oneshot(request.body(Full::<Bytes>::default())?).await?;
//!     assert_eq!(response.headers().contains_key("idempotent-replayed"), replayed);
//!     assert_eq!(response.into_body().collect().await?.to_bytes(), "charge 1");
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod body;
mod checks;
mod config;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod describe;
mod error;
mod fingerprint;
mod future;
mod guard;
mod kept;
mod key;
mod layer;
mod mark;
mod memory;
mod problem;
mod reply;
mod run;
mod service;
mod state;
mod store;
mod sweep;
mod tx;

pub use answer::{Answer, Kept, SealedAnswer};
pub use body::IdempotencyBody;
pub use config::{IdempotencyBuilder, IdempotencyPolicy, OnStoreFailure, Stored};
pub use describe::Description;
pub use error::{StoreError, StoreErrorKind};
pub use fingerprint::Fingerprint;
pub use future::IdempotencyFuture;
pub use key::{KeyId, KeySyntax, MAX_KEY_LEN};
pub use layer::IdempotencyLayer;
pub use mark::{IDEMPOTENCY_RECORDED, IDEMPOTENCY_RETENTION, IDEMPOTENT_REPLAYED};
pub use memory::{MAX_KEYS, MemoryStore};
pub use service::Idempotency;
pub use store::{
    Begin, Begun, Fence, IdempotencyStore, Lease, OnExpiry, Record, RecordState, Row, Step, Written,
};
pub use sweep::{SWEEP_BATCH, sweep_every};
pub use tx::{IdempotencyTx, NotRun};

#[cfg(test)]
mod tests;
