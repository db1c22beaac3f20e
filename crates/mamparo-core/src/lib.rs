//! The words that every part of mamparo shares: deadline, verdict, backoff, budget, event, rejection.
//!
//! Nothing here does I/O. Layers, telemetry and the durable engine depend on this crate and never on each
//! other; what two of them share lives here.

mod answer;
pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod chain;
pub mod classify;
pub mod clock;
pub mod context;
mod deadline;
pub mod dependency;
mod ending;
pub mod event;
pub mod fnv;
pub mod gate;
pub mod grpc;
pub mod http;
mod key_step;
pub mod keyed;
mod nested;
mod rejection;
mod setting;
pub mod shard;
#[cfg(feature = "tonic")]
mod status;
mod sync;
mod transport;
mod verdict;
pub mod vitals;

pub use answer::Answer;
pub use backoff::{Backoff, Jitter};
pub use budget::{Budget, Exhausted, Tenant};
pub use classify::{Classify, End, Ends, Head, Outcome, Plain, Settle};
pub use context::{AttemptLimit, CallContext, Cause, LayerKind, OperationId, Scope, carry, detach};
pub use deadline::{Deadline, Reserve};
pub use dependency::Dependency;
pub use ending::{Ending, RetryError};
pub use event::{Event, FallbackEnd, NotResent, Observer, ShedBy, What};
pub use gate::Gate;
pub use key_step::KeyStep;
pub use nested::Nested;
pub use rejection::{Reason, Rejection, ResponseHead};
pub use setting::InvalidSetting;
pub use transport::TransportError;
pub use verdict::{Class, Kind, Resend, Verdict};

/// An error of any kind, as tower's own layers return it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;
