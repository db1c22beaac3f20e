//! Turns "not now" into a row, around any HTTP client stack.
//!
//! The layer stands around a whole stack, outermost. What the stack answers is the caller's, unless the policy calls it "later": then the
//! request is stored in an [engine](crate::engine), which sends it through the same stack when its time comes, and the caller is told under
//! which id and when: [`Deferred`].
//!
//! | what the stack ends in | what the caller gets |
//! |---|---|
//! | an answer that the [`Judge`](crate::web::Judge) calls refused | [`Deferrable::Deferred`]; an attempt is spent |
//! | a technical failure: 503, reset, timeout | the same with [`failures`](DeferBuilder::failures), if it is repeatable; none is spent |
//! | a rejection that was not sent: a breaker is open | the same with [`rejections`](DeferBuilder::rejections); none is spent |
//! | the same, of an attempt after the stack's first | as of a technical failure: the first may have taken effect |
//! | anything else | [`Deferrable::Answered`], or the error, as they are |
//! | one of the first three that can't be stored | a [`DeferError`], with the answer or the error inside |
//!
//! A `Retry-After`, or a rejection's own, is the least wait. Requests of safe methods (RFC 9110 §9.2.1) pass untouched: nobody would read
//! a later answer.
//!
//! # Why an enum, and neither an error nor a 202
//!
//! A deferral is no failure: as an error, a retry, a breaker or a fallback around it would act on it, and a `?` would lose it. Nor is it an
//! answer of the dependency: as a 202 of our own, a caller who does not look takes a payment for made. An enum has to be looked at. Layers
//! that read HTTP answers belong inside, in the stack; plain ones (`Buffer`, `DeadlineLayer::new`) may stand around it.
//!
//! # Keys
//!
//! A request without an idempotency key gets one before it is first sent: `{id}#1`. What the engine sends again of attempt 1 carries that
//! very key, or the caller's own, so that a dependency that did act says so instead of acting twice. Each attempt after a refusal is a
//! new one for the dependency, under `{id}#2` and so on: under the old key it would only repeat its refusal.
//!
//! The transaction's id is what [`DeferAs`] says, else the dependency and the caller's own key, else a new UUID. Two requests under one id
//! are one transaction: of an id that is named, the store is asked first, and a request that is known is not sent by the layer again, but
//! told where it stands. While the store does not answer, requests under such an id are refused and not sent.
//!
//! # What is stored
//!
//! Method, address, the headers that the policy [lists](DeferBuilder::headers), the key, and the body, which is read whole before it is
//! sent. A body beyond the bound, one that breaks off and one with trailers are refused before anything is sent, so that it does not
//! come out in the hour of an outage. What else each send needs (an authorization) is the stack's to add, or the sender's.
//!
//! # When not
//!
//! A process that dies while the original is under way has stored nothing yet. Where that may not be,
//! [begin](crate::engine::Engine::begin) the transaction first, and let the engine send the original too.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response, StatusCode};
//! use http_body_util::Full;
//! use mamparo_core::{BoxError, clock::SystemClock};
//! use mamparo_durable::defer::{DeferLayer, DeferPolicy, Deferrable};
//! use mamparo_durable::engine::Engine;
//! use mamparo_durable::memory::Memory;
//! use mamparo_durable::web::Judge;
//! use tower::{Layer, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! // Any client stack: here, a provider that says "not now".
//! let psp = tower::service_fn(async |_: Request<Full<Bytes>>| {
//!     Ok::<_, BoxError>(Response::builder().status(StatusCode::CONFLICT).body(Full::<Bytes>::default())?)
//! });
//! let engine = Engine::builder(Memory::new(SystemClock).backend()).build()?;
//! let judge = Judge::builder().refused([StatusCode::CONFLICT]).build()?;
//! let policy = DeferPolicy::builder("payment").judge(judge).build()?;
//! let layer = DeferLayer::new(engine.clone(), policy).dependency("psp");
//! let running = engine.run(layer.sender::<_, Full<Bytes>>(psp.clone())); // what is due goes out through the same stack
//!
//! let charge = Request::post("http://psp/charges").body(Full::from("5 EUR"))?;
//! match layer.layer(psp).oneshot(charge).await? {
//!     Deferrable::Answered(answer) => println!("{}", answer.status()),
//!     Deferrable::Deferred(deferred) => println!("{deferred}"), // 01970000-… waits until 2030-01-31T10:00:00.000Z
//!     # _ => unreachable!()
//! }
//! running.stop().await?;
//! # Ok(())
//! # }
//! ```

mod body;
mod config;
mod error;
mod future;
mod keep;
mod layer;
mod named;
mod outcome;
mod run;
mod service;
mod state;
#[cfg(test)]
mod tests;

pub use body::DeferBody;
pub use config::{DeferBuilder, DeferKeys, DeferPolicy, MAX_BODY_BYTES, MAX_HEADERS};
pub use error::{DeferError, Undeferred};
pub use future::DeferFuture;
pub use keep::MAX_HEAD_BYTES;
pub use layer::DeferLayer;
pub use named::DeferAs;
pub use outcome::{Deferrable, Deferred};
pub use run::{READ_WITHIN, STORE_WITHIN};
pub use service::Defer;
