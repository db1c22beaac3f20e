//! HTTP's place for a deadline: headers of the request, and the response's body.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use ::http::{HeaderValue, Request, Response};
use http_body::Body;
use mamparo_core::BoxError;
use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_core::grpc::{Code, GRPC_PREVIOUS_RPC_ATTEMPTS};

use super::{BodyLimits, BoundsAnswer, CarriesDeadline, TimedBody};
use crate::grpc::ServiceConfig;
use crate::replay::ATTEMPT_HEADER;
use crate::wire::codec::{DeadlineHeader, DeadlineHeaders, Read};

/// The deadline headers that are accepted, and those that are sent.
///
/// By default `x-request-timeout-ms` and `grpc-timeout` are accepted, and the first is sent. [`HttpWire::grpc`] knows
/// `grpc-timeout` only.
///
/// ```
/// use mamparo::wire::codec::DeadlineHeader;
/// use mamparo::wire::HttpWire;
///
/// let wire = HttpWire::default().sends(DeadlineHeader::seconds("request-timeout")?);
/// # let _ = wire;
/// # Ok::<(), mamparo::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct HttpWire {
    accepted: DeadlineHeaders,
    sent: DeadlineHeaders,
    only_accepted: DeadlineHeaders,
    only_sent: DeadlineHeaders,
    wall_clock: Arc<dyn WallClock>,
    grpc: bool,
    config: Option<ServiceConfig>,
}

impl HttpWire {
    fn new(
        accepted: DeadlineHeaders,
        sent: DeadlineHeaders,
        wall_clock: Arc<dyn WallClock>,
    ) -> Self {
        Self {
            only_accepted: accepted.without(&sent),
            only_sent: sent.without(&accepted),
            accepted,
            sent,
            wall_clock,
            grpc: false,
            config: None,
        }
    }

    /// gRPC's place: `grpc-timeout` is accepted and sent, and no other header (gRPC over HTTP/2, "Requests").
    ///
    /// An answer with status `CANCELLED` that comes once the deadline has passed is the deadline's doing, and becomes a
    /// rejection that says so: what the peer calls it depends on which of two clocks was read first.
    #[must_use]
    pub fn grpc() -> Self {
        let headers = DeadlineHeaders::from(DeadlineHeader::grpc_timeout());
        Self {
            grpc: true,
            ..Self::new(headers.clone(), headers, Arc::new(SystemClock))
        }
    }

    /// Accepts these headers, instead of the default ones.
    #[must_use]
    pub fn accepts(self, headers: impl Into<DeadlineHeaders>) -> Self {
        Self {
            grpc: self.grpc,
            config: self.config,
            ..Self::new(headers.into(), self.sent, self.wall_clock)
        }
    }

    /// Sends these headers, instead of the default one.
    #[must_use]
    pub fn sends(self, headers: impl Into<DeadlineHeaders>) -> Self {
        Self {
            grpc: self.grpc,
            config: self.config,
            ..Self::new(self.accepted, headers.into(), self.wall_clock)
        }
    }

    /// Obeys the timeouts of a gRPC service config, which bound whole calls: in a
    /// [`DeadlineLayer`](crate::deadline::DeadlineLayer), each by what is said of its method.
    #[must_use]
    pub fn service_config(mut self, config: &ServiceConfig) -> Self {
        self.config = Some(config.clone());
        self
    }

    /// Sets the clock against which absolute deadlines are read and written.
    #[must_use]
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.wall_clock = Arc::new(clock);
        self
    }

    /// The time of day, read only where a header needs it.
    fn wall(&self, headers: &DeadlineHeaders) -> SystemTime {
        if headers.iter().any(DeadlineHeader::is_absolute) {
            self.wall_clock.now()
        } else {
            SystemTime::UNIX_EPOCH
        }
    }
}

impl Default for HttpWire {
    /// All stacks have the same headers.
    fn default() -> Self {
        static DEFAULT: LazyLock<HttpWire> = LazyLock::new(HttpWire::usual);
        DEFAULT.clone()
    }
}

impl HttpWire {
    fn usual() -> Self {
        let accepted = [
            DeadlineHeader::request_timeout_ms(),
            DeadlineHeader::grpc_timeout(),
        ];
        // Two different names can't be refused; one of them alone would still be right.
        let accepted = DeadlineHeaders::new(accepted).unwrap_or_default();
        Self::new(accepted, DeadlineHeaders::default(), Arc::new(SystemClock))
    }
}

impl<B> CarriesDeadline<Request<B>> for HttpWire {
    fn read<'a>(&'a self, request: &Request<B>) -> Read<'a> {
        self.accepted
            .read_all(request.headers(), self.wall(&self.accepted))
    }

    fn strip(&self, request: &mut Request<B>) {
        self.accepted.strip(request.headers_mut());
        self.only_sent.strip(request.headers_mut());
    }

    // Most requests carry none, and each removal is a hash.
    fn take<'a>(&'a self, request: &mut Request<B>) -> Read<'a> {
        let read = CarriesDeadline::<Request<B>>::read(self, request);
        if !read.is_empty() {
            self.accepted.strip(request.headers_mut());
        }
        self.only_sent.strip(request.headers_mut());
        read
    }

    fn write(&self, request: &mut Request<B>, remaining: Duration) {
        let wall = self.wall(&self.sent);
        self.only_accepted.strip(request.headers_mut());
        // A request whose header map is full goes without: it is bounded here all the same.
        let _full = self.sent.write_all(request.headers_mut(), remaining, wall);
    }

    #[inline]
    fn limit(&self, request: &Request<B>) -> Option<Duration> {
        self.config.as_ref()?.timeout(request.uri().path())
    }

    #[inline]
    fn attempt(&self, request: &Request<B>) -> u32 {
        let headers = request.headers();
        let number = |value: &HeaderValue| digits(value.as_bytes());
        if let Some(value) = headers.get(ATTEMPT_HEADER) {
            return number(value);
        }
        // gRPC tells how many were before it (gRFC A6), and says nothing with the first.
        let before = headers.get(GRPC_PREVIOUS_RPC_ATTEMPTS).map_or(0, number);
        if before == 0 {
            0
        } else {
            before.saturating_add(1)
        }
    }
}

/// A number in digits only, since `parse` would take a sign; 0 if it is none, or too large.
fn digits(value: &[u8]) -> u32 {
    let text = std::str::from_utf8(value).unwrap_or_default();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().unwrap_or(0)
    } else {
        0
    }
}

impl<B> BoundsAnswer<Response<B>> for HttpWire
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Bounded = Response<TimedBody<B>>;

    fn bound(&self, answer: Response<B>, limits: impl FnOnce() -> BodyLimits) -> Self::Bounded {
        answer.map(|body| TimedBody::new(body, limits))
    }

    #[inline]
    fn says_cancelled(&self, answer: &Response<B>) -> bool {
        self.grpc && Code::of_headers(answer.headers()) == Some(Code::Cancelled)
    }
}
