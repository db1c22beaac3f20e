//! Resilience for Rust services, as tower layers.
//!
//! Begin with [`stack`], the recommended layers in order, and with a client around which `client` puts them. To choose
//! the layers yourself, put them into a `tower::ServiceBuilder`; the words that they share (rejections, budgets,
//! verdicts) are those of [`mamparo_core`], which stands here as [`core`].
//!
//! | a caller's layers, outermost first | |
//! |---|---|
//! | [`DeadlineLayer`](deadline::DeadlineLayer) | bounds a whole operation, its answer's body included |
//! | [`FallbackLayer`](fallback::FallbackLayer) | gives an operation that failed another answer |
//! | [`IdempotencyKeyLayer`](idempotency_key::IdempotencyKeyLayer) | gives it one key, the same on all of its attempts |
//! | [`BulkheadLayer`](bulkhead::BulkheadLayer) | bounds how many calls run at once |
//! | [`RetryLayer`](retry::RetryLayer) | sends a failed request again |
//! | [`HedgeLayer`](hedge::HedgeLayer) | in its place: sends a slow request a second time, beside the first |
//! | [`PeekLayer`](peek::PeekLayer) | shows that owner a failure which a gRPC server tells late |
//! | [`BreakerLayer`](breaker::BreakerLayer) | stops calling a dependency that fails |
//! | [`LoadShedLayer`](load_shed::LoadShedLayer) | refuses calls while the load is too high |
//! | [`RateLimitLayer`](rate_limit::RateLimitLayer) | lets calls pass at a rate |
//! | [`AttemptTimeoutLayer`](attempt_timeout::AttemptTimeoutLayer) | bounds one attempt, and tells the next service what remains |
//! | [`ConnectTimeoutLayer`](connect_timeout::ConnectTimeoutLayer) | bounds the making of a connection, inside the client |
//!
//! A server has them in one call too: [`serve::grpc`] for tonic, [`serve::http`] for axum.
//!
//! | a server's layers, outermost first | |
//! |---|---|
//! | [`RejectionLayer`](rejection::RejectionLayer) | turns every error into a response |
//! | [`ServerDeadlineLayer`](server_deadline::ServerDeadlineLayer) | takes the caller's deadline over |
//! | [`IdempotencyLayer`](idempotency::IdempotencyLayer) | answers a repeated request as the first |
//! | [`CatchPanicLayer`](catch_panic::CatchPanicLayer) | turns a handler's panic into an error |
//!
//! # Features
//!
//! None is on by default, and none changes behaviour: `hyper`, `reqwest` and `tonic` bring in a client, and its adapter; `axum`
//! makes a [`problem`] one of axum's responses; `signal` brings in the signals by which a server is told to stop; `fault` brings in
//! the layer that spoils calls on purpose, so that a program built without it can't be made to fail by a setting; `conformance`
//! brings in the tests of stores of idempotency keys;
//! `service-config` brings in `serde_json`, and [`grpc::ServiceConfig`] can then be read from gRPC's JSON; `config` brings in the
//! policy file, and `admin` axum, and a window on the policies over HTTP.
//!
//! # Errors
//!
//! Every layer's error is a [`BoxError`]. [`RetryError::of`] finds
//! how an operation ended in it, [`Rejection::of`] what we refused or cut ourselves. The text
//! of an error says what happened to the operation; why its last attempt failed is in `source()`.

#[cfg(feature = "admin")]
pub mod admin;
pub mod attempt_timeout;
mod bound;
pub mod breaker;
pub mod bulkhead;
pub mod caller;
pub mod catch_panic;
#[cfg(any(feature = "hyper", feature = "reqwest", feature = "tonic"))]
pub mod client;
pub mod connect_timeout;
pub mod deadline;
pub mod fallback;
#[cfg(feature = "fault")]
pub mod fault;
pub mod grpc;
pub mod hedge;
pub mod idempotency;
pub mod idempotency_key;
pub mod load_shed;
pub mod peek;
#[cfg(feature = "config")]
pub mod policy;
pub mod problem;
pub mod rate_limit;
pub mod rejection;
pub mod replay;
mod resend;
pub mod retry;
pub mod serve;
pub mod server_deadline;
pub mod stack;
mod sync;
mod timer;
pub mod wire;

pub use mamparo_core as core;
pub use mamparo_core::{
    Backoff, BoxError, Budget, CallContext, Ending, InvalidSetting, Observer, Rejection,
    RetryError, carry, detach,
};
