//! How a protocol's results are judged, and how long a guard lives.

use std::fmt;
use std::io;

use http::HeaderMap;

use crate::{BoxError, Kind, Reason, Rejection, Resend, TransportError, Verdict, chain};

/// How an answer's stream ended.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a classifier must say what each end means"
)]
pub enum End<'a> {
    /// The stream was read to its end; these are its trailers, if it had any.
    Trailers(Option<&'a HeaderMap>),
    /// The stream broke.
    Error(&'a BoxError),
    /// The stream was dropped before its end.
    Dropped,
}

/// The verdict as far as an answer's head tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether nothing later can change it.
    pub last: bool,
}

impl Head {
    /// A verdict that nothing later can change: a failure, or an answer without a stream.
    #[must_use]
    pub const fn last(verdict: Verdict) -> Self {
        Self {
            verdict,
            last: true,
        }
    }

    /// A verdict that stays open until the stream ends.
    #[must_use]
    pub const fn open(verdict: Verdict) -> Self {
        Self {
            verdict,
            last: false,
        }
    }
}

/// Says what the end of a stream means, given what its head meant.
pub trait Ends: Send + Sync + 'static {
    /// Returns the final verdict.
    fn end(&self, head: Verdict, end: End<'_>) -> Verdict;
}

/// Says what an attempt's result means: pure, and called by reference wherever a verdict is needed.
pub trait Classify<Res>: Send + Sync + 'static {
    /// Returns the verdict on a head or an error.
    fn head(&self, outcome: Result<&Res, &BoxError>) -> Head;

    /// Refines the verdict: `refine` sees the outcome and the verdict so far.
    ///
    /// ```
    /// use mamparo_core::{BoxError, Classify, Kind, Plain, Resend, Verdict};
    ///
    /// let classifier = Classify::<u32>::refine(
    ///     Plain::idempotent(),
    ///     |outcome: Result<&u32, &BoxError>, verdict: Verdict| match outcome {
    ///         Ok(&answer) if answer > 9 => Verdict::failure(Kind::Server, Resend::IfIdempotent),
    ///         _ => verdict,
    ///     },
    /// );
    /// assert_eq!(classifier.head(Ok(&10)).verdict.kind(), Some(Kind::Server));
    /// ```
    fn refine<F>(self, refine: F) -> Refined<Self, F>
    where
        Self: Sized,
        F: Fn(Result<&Res, &BoxError>, Verdict) -> Verdict + Send + Sync + 'static,
    {
        Refined {
            classifier: self,
            refine,
        }
    }
}

/// Holds something until an attempt's verdict is final, then hears it. Dropped unsettled means ignored.
pub trait Settle: Send + 'static {
    /// Hears the final verdict; called once at most.
    fn settle(&mut self, verdict: Verdict);

    /// Runs one poll of the answer's stream, for as long as the verdict is open.
    ///
    /// A guard that carries a context makes it current here, so that what the stream does belongs to the call.
    #[inline]
    fn around<R>(&mut self, poll: impl FnOnce() -> R) -> R
    where
        Self: Sized,
    {
        poll()
    }
}

/// Says where a guard lives until the answer is over: settled at the head, or kept inside the body.
pub trait Outcome<Res>: Classify<Res> {
    /// The answer with the guard tied to it.
    type Out<G: Settle>;

    /// Ties the guard to the answer, or settles it at once when the head's verdict is final.
    fn tie<G: Settle>(&self, response: Res, head: Head, guard: G) -> Self::Out<G>;

    /// Hands the answer on with no guard: what a layer that is off does, and neither judges nor counts.
    fn untied<G: Settle>(response: Res) -> Self::Out<G>;
}

/// Requests and answers without a stream: any tower service.
///
/// Whether a request may be sent twice is for the caller to say, so there is no default.
///
/// ```
/// use mamparo_core::{BoxError, Classify, Kind, Plain, Resend};
///
/// let error: BoxError = "deadlock detected".into();
/// let head = Classify::<u32>::head(&Plain::idempotent(), Err(&error));
/// assert_eq!(head.verdict.kind(), Some(Kind::Other));
/// assert_eq!(head.verdict.resend(), Resend::IfIdempotent);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Plain {
    idempotent: bool,
}

impl Plain {
    /// Requests that may be sent again after a failure.
    #[must_use]
    pub const fn idempotent() -> Self {
        Self { idempotent: true }
    }

    /// Requests that are sent again only with proof that they were never processed.
    #[must_use]
    pub const fn not_idempotent() -> Self {
        Self { idempotent: false }
    }

    /// Tells whether requests may be sent again after a failure.
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        self.idempotent
    }
}

impl<Res> Classify<Res> for Plain {
    fn head(&self, outcome: Result<&Res, &BoxError>) -> Head {
        Head::last(match outcome {
            Ok(_) => Verdict::SUCCESS,
            Err(error) => {
                known_error(error).unwrap_or(Verdict::failure(Kind::Other, Resend::IfIdempotent))
            }
        })
    }
}

impl<Res> Outcome<Res> for Plain {
    type Out<G: Settle> = Res;

    fn tie<G: Settle>(&self, response: Res, head: Head, mut guard: G) -> Res {
        guard.settle(head.verdict);
        response
    }

    #[inline]
    fn untied<G: Settle>(response: Res) -> Res {
        response
    }
}

/// A classifier whose verdicts another function refines; see [`Classify::refine`].
#[derive(Clone, Copy)]
pub struct Refined<C, F> {
    classifier: C,
    refine: F,
}

impl<C, F> Refined<C, F> {
    /// Returns the classifier that is refined.
    pub const fn inner(&self) -> &C {
        &self.classifier
    }
}

impl<C: fmt::Debug, F> fmt::Debug for Refined<C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Refined").field(&self.classifier).finish()
    }
}

impl<Res, C, F> Classify<Res> for Refined<C, F>
where
    C: Classify<Res>,
    F: Fn(Result<&Res, &BoxError>, Verdict) -> Verdict + Send + Sync + 'static,
{
    fn head(&self, outcome: Result<&Res, &BoxError>) -> Head {
        let head = self.classifier.head(outcome);
        let verdict = (self.refine)(outcome, head.verdict);
        Head {
            verdict,
            last: head.last || verdict.kind().is_some(),
        }
    }
}

impl<Res, C, F> Outcome<Res> for Refined<C, F>
where
    C: Outcome<Res>,
    F: Fn(Result<&Res, &BoxError>, Verdict) -> Verdict + Send + Sync + 'static,
{
    type Out<G: Settle> = C::Out<G>;

    fn tie<G: Settle>(&self, response: Res, head: Head, guard: G) -> Self::Out<G> {
        self.classifier.tie(response, head, guard)
    }

    fn untied<G: Settle>(response: Res) -> Self::Out<G> {
        C::untied(response)
    }
}

/// Returns the verdict on errors that mean the same in every protocol: our own rejections first, since
/// clients call a rejection made in a connector a connect failure; then what a transport proves.
#[must_use]
pub fn known_error(error: &BoxError) -> Option<Verdict> {
    let transport = TransportError::of(&**error).map(TransportError::verdict);
    let refused = transport.filter(|verdict| verdict.kind() == Some(Kind::Client));
    // A rejection further in is then that of the request's own body: another dependency's answer, which was cut.
    if refused.is_some() {
        return refused;
    }
    if let Some(rejection) = Rejection::of(&**error) {
        return Some(rejected(rejection));
    }
    if transport.is_some() {
        return transport;
    }
    chain::find::<io::Error>(&**error).and_then(|error| io_error(error.kind()))
}

const fn rejected(rejection: &Rejection) -> Verdict {
    match rejection.reason() {
        Reason::AttemptTimedOut | Reason::BodyIdle if rejection.sent() => {
            Verdict::failure(Kind::Timeout, Resend::IfIdempotent)
        }
        // The whole operation's time is over: the dependency failed, and nobody waits for another attempt.
        Reason::DeadlineExceeded if rejection.sent() => {
            Verdict::failure(Kind::Timeout, Resend::Never)
        }
        Reason::ConnectTimedOut => Verdict::failure(Kind::Connect, Resend::Always),
        _ => Verdict::IGNORED,
    }
}

const fn io_error(kind: io::ErrorKind) -> Option<Verdict> {
    use io::ErrorKind as Io;
    Some(match kind {
        Io::ConnectionRefused
        | Io::HostUnreachable
        | Io::NetworkUnreachable
        | Io::AddrNotAvailable => Verdict::failure(Kind::Connect, Resend::Always),
        Io::ConnectionReset
        | Io::ConnectionAborted
        | Io::BrokenPipe
        | Io::NotConnected
        | Io::UnexpectedEof => Verdict::failure(Kind::Reset, Resend::IfIdempotent),
        Io::TimedOut => Verdict::failure(Kind::Timeout, Resend::IfIdempotent),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(error: impl Into<BoxError>) -> Verdict {
        Classify::<()>::head(&Plain::idempotent(), Err(&error.into())).verdict
    }

    #[test]
    fn an_attempt_cut_by_its_timeout_is_a_failure_and_a_refusal_is_not() {
        let cut = plain(Rejection::cut(Reason::AttemptTimedOut, "d".into()));
        assert_eq!(cut, Verdict::failure(Kind::Timeout, Resend::IfIdempotent));
        let refused = plain(Rejection::refused(Reason::AttemptTimedOut, "d".into()));
        assert_eq!(refused, Verdict::IGNORED);
    }

    /// Row D9: the two are different kinds of error, with different retry rules.
    #[test]
    fn an_attempt_timeout_may_be_resent_and_a_deadline_may_not() {
        let attempt = plain(Rejection::cut(Reason::AttemptTimedOut, "d".into()));
        let deadline = plain(Rejection::cut(Reason::DeadlineExceeded, "d".into()));
        assert_eq!(attempt.resend(), Resend::IfIdempotent);
        assert_eq!(deadline.resend(), Resend::Never);
    }

    #[test]
    fn a_rejection_made_in_a_connector_is_ours_and_not_a_connect_failure() {
        let rejection = Rejection::refused(Reason::DeadlineExceeded, "d".into());
        let wrapped = TransportError::new(Kind::Connect, Resend::Always, rejection);
        assert_eq!(plain(wrapped), Verdict::IGNORED);
    }

    /// Law 6: a proxy's upload is another dependency's answer, and that one may be cut.
    #[test]
    fn a_rejection_made_in_the_requests_own_body_is_not_the_dependencys_failure() {
        let cut = Rejection::cut(Reason::BodyIdle, "another".into());
        let broken = TransportError::new(Kind::Client, Resend::Never, cut);
        assert_eq!(plain(broken), Verdict::failure(Kind::Client, Resend::Never));
    }

    #[test]
    fn a_refused_connection_is_proof_that_nothing_was_sent() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(plain(refused).resend(), Resend::Always);
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(plain(reset).resend(), Resend::IfIdempotent);
    }
}
