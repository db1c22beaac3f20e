//! What a protocol says of its place for a deadline.

use std::time::Duration;

use super::BodyLimits;
use super::codec::Read;

/// Reads and writes a deadline on a request.
pub trait CarriesDeadline<Req>: Send + Sync + 'static {
    /// Reads the deadlines that a request carries.
    fn read<'a>(&'a self, request: &Req) -> Read<'a>;

    /// Takes the deadlines off a request, so that no stale value is sent on.
    fn strip(&self, request: &mut Req);

    /// Reads the deadlines that a request carries and takes them off.
    fn take<'a>(&'a self, request: &mut Req) -> Read<'a> {
        let read = self.read(request);
        self.strip(request);
        read
    }

    /// Writes what remains on a request, in place of any value that it carries.
    fn write(&self, request: &mut Req, remaining: Duration);

    /// Returns how long a call of the request's method may take by its service config, where there is one.
    #[inline]
    fn limit(&self, _request: &Req) -> Option<Duration> {
        None
    }

    /// Reads which attempt of its caller the request is, 0 where it does not say so.
    #[inline]
    fn attempt(&self, _request: &Req) -> u32 {
        0
    }
}

/// Bounds the stream of an answer.
pub trait BoundsAnswer<Res>: Send + Sync + 'static {
    /// The answer, bounded.
    type Bounded;

    /// Bounds an answer; the limits are asked for only where there is a stream to bound.
    fn bound(&self, answer: Res, limits: impl FnOnce() -> BodyLimits) -> Self::Bounded;

    /// Tells whether an answer says that the call was cancelled, which whoever obeys our deadline may say at its end.
    #[inline]
    fn says_cancelled(&self, _answer: &Res) -> bool {
        false
    }
}
