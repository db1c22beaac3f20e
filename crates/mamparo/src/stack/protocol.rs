//! What the stack asks of a protocol, besides what its layers do.

use http::HeaderName;
use mamparo_core::grpc::Grpc;
use mamparo_core::http::Http;
use tower_layer::Layer;

use crate::peek::{Peek, PeekLayer};
use crate::rate_limit::{GrpcLimits, HttpLimits};

/// A protocol that a stack can be made for, such as [`Http`] and [`Grpc`].
pub trait Protocol: Clone + Send + Sync + 'static {
    /// How the dependency says what its limit is.
    type Limits: Clone;

    /// Returns that.
    fn limits() -> Self::Limits;

    /// What stands around each attempt, so that who resends sees how its answer begins.
    type Peeked<S: Clone>: Clone;

    /// Puts that around an attempt.
    fn peeked<S: Clone>(layer: PeekLayer, attempt: S) -> Self::Peeked<S>;

    /// Says which request header carries an idempotency key.
    #[must_use]
    fn keyed_by(self, header: &HeaderName) -> Self;
}

impl Protocol for Http {
    type Limits = HttpLimits;

    fn limits() -> HttpLimits {
        HttpLimits::default()
    }

    // A status stands in the head.
    type Peeked<S: Clone> = S;

    fn peeked<S: Clone>(_: PeekLayer, attempt: S) -> S {
        attempt
    }

    fn keyed_by(self, header: &HeaderName) -> Self {
        self.with_key_header(header.clone())
    }
}

impl Protocol for Grpc {
    type Limits = GrpcLimits;

    fn limits() -> GrpcLimits {
        GrpcLimits
    }

    type Peeked<S: Clone> = Peek<S>;

    fn peeked<S: Clone>(layer: PeekLayer, attempt: S) -> Peek<S> {
        layer.layer(attempt)
    }

    // Whether a method may be sent again is its policy's to say, with a key or without.
    fn keyed_by(self, _: &HeaderName) -> Self {
        self
    }
}
