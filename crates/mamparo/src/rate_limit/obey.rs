//! What an answer says of a limit: the dependency's own, to its client, or a server's, to its caller.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_core::grpc::{Code, Pushback, is_grpc};
use mamparo_core::http::{Quota, hint};

/// Reads from an answer how long the dependency lets nothing pass; or, on a server, writes into it what is left.
pub trait ReadsLimit<Res>: Clone + Send + Sync + 'static {
    /// Returns the wait, if the answer asks for one.
    fn wait(&self, answer: &Res) -> Option<Duration>;

    /// Writes what is left of a server's own limit; by default nothing.
    fn tell(&self, answer: &mut Res, quota: &Quota) {
        let _ = (answer, quota);
    }
}

/// A server's own limit, told to its callers as the fields `RateLimit` and `RateLimit-Policy`.
///
/// gRPC has no such words: of its answers none is changed, and a refusal pushes back.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerLimits;

impl<B> ReadsLimit<Response<B>> for ServerLimits {
    #[inline]
    fn wait(&self, _: &Response<B>) -> Option<Duration> {
        None
    }

    fn tell(&self, answer: &mut Response<B>, quota: &Quota) {
        if !is_grpc(answer.headers()) {
            quota.write(answer.headers_mut());
        }
    }
}

/// Answers that say nothing of a limit: any tower service.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLimits;

impl<Res> ReadsLimit<Res> for NoLimits {
    #[inline]
    fn wait(&self, _: &Res) -> Option<Duration> {
        None
    }
}

/// HTTP: `Retry-After` of a 429 or 503, or else `RateLimit` of any answer when nothing is left.
///
/// `RateLimit` is that of draft-ietf-httpapi-ratelimit-headers-10: how long the policies that have nothing left ask to
/// wait. What is malformed is ignored, and so is what a stored answer says. `X-RateLimit-*` is not read: what its
/// numbers mean differs from server to server.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    clock: Arc<dyn WallClock>,
}

impl HttpLimits {
    /// Reads an HTTP date in `Retry-After` by this clock, where the answer has no `Date`.
    #[must_use]
    pub fn with_clock(clock: impl WallClock) -> Self {
        Self {
            clock: Arc::new(clock),
        }
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self::with_clock(SystemClock)
    }
}

impl<B> ReadsLimit<Response<B>> for HttpLimits {
    fn wait(&self, answer: &Response<B>) -> Option<Duration> {
        let refused = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        let headers = answer.headers();
        if refused.contains(&answer.status()) {
            hint::server_wait(headers, &*self.clock)
        } else {
            hint::rate_limit(headers)
        }
    }
}

/// gRPC: the pushback of an answer whose status is in its head (gRFC A6), when that is `RESOURCE_EXHAUSTED` or `UNAVAILABLE`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrpcLimits;

impl<B> ReadsLimit<Response<B>> for GrpcLimits {
    fn wait(&self, answer: &Response<B>) -> Option<Duration> {
        let headers = answer.headers();
        match Code::of_headers(headers)? {
            Code::ResourceExhausted | Code::Unavailable => match Pushback::of(headers)? {
                Pushback::After(wait) => Some(wait),
                Pushback::Stop => None,
            },
            _ => None,
        }
    }
}
