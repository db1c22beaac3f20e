//! What a protocol says of making its requests again.

use mamparo_core::NotResent;

use super::Safety;

/// Says how a request is made again, and when it may be.
pub trait Replay<Req>: Send + Sync + 'static {
    /// What is sent.
    type Wire;
    /// What is held for a resend.
    type Held;

    /// Splits a request into what is sent now and what is held for a resend.
    ///
    /// `keep` is the most bytes of a body to hold; none means that no resend can follow, and nothing is
    /// copied. Holding nothing although asked to means that the request is too large to be sent again.
    fn split(&self, request: Req, keep: Option<usize>) -> (Self::Wire, Option<Self::Held>);

    /// Makes the request again, after the attempts before it are over: they read no more of a body.
    ///
    /// `more` tells whether yet another resend can follow.
    ///
    /// # Errors
    ///
    /// Says why the request can't be made again.
    fn again(
        &self,
        held: Self::Held,
        more: bool,
    ) -> Result<(Self::Wire, Option<Self::Held>), NotResent>;

    /// Makes the request again beside attempts that are still under way: all of them read the whole body.
    ///
    /// The same as [`again`](Self::again) where attempts share nothing.
    ///
    /// # Errors
    ///
    /// Says why the request can't be made again; the attempts under way are not disturbed.
    fn beside(
        &self,
        held: Self::Held,
        more: bool,
    ) -> Result<(Self::Wire, Option<Self::Held>), NotResent> {
        self.again(held, more)
    }

    /// Tells what makes the request safe to send again, or not.
    fn safety(&self, request: &Req) -> Safety;

    /// Returns the path of the method that the request calls, by which a
    /// [`ServiceConfig`](crate::grpc::ServiceConfig) has its plan; none where the protocol has no such configs.
    fn method<'a>(&self, _request: &'a Req) -> Option<&'a str> {
        None
    }

    /// Tells whether what was never processed is sent once more at once, as the same attempt (gRFC A6, "Transparent Retries").
    fn is_transparent(&self) -> bool {
        false
    }

    /// Writes the attempt's number on a resend, where the protocol has a place for it.
    fn number(&self, wire: &mut Self::Wire, attempt: u32);
}
