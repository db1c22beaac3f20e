//! What the caller is told about how its operation ended.

use std::fmt::Debug;

use http::Response;
use mamparo_core::classify::Refined;
use mamparo_core::http::Http;
use mamparo_core::{NotResent, Plain, ResponseHead};

/// How a retry ended its operation: found in a response's extensions, or in a [`RetryError`](super::RetryError).
///
/// A response that came with the first attempt and needs no word carries none.
///
/// ```
/// use mamparo::retry::Ending;
///
/// let response = http::Response::new(());
/// assert!(Ending::of(&response).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    attempts: u32,
    not_resent: Option<NotResent>,
    indeterminate: bool,
}

impl Ending {
    pub(super) const fn new(
        attempts: u32,
        not_resent: Option<NotResent>,
        indeterminate: bool,
    ) -> Self {
        Self {
            attempts,
            not_resent,
            indeterminate,
        }
    }

    /// Finds how the operation of a response ended.
    #[must_use]
    pub fn of<B>(response: &Response<B>) -> Option<&Self> {
        response.extensions().get()
    }

    /// Returns how many attempts were made.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns why a failure was not sent again; none when the last attempt succeeded.
    #[must_use]
    pub const fn not_resent(&self) -> Option<NotResent> {
        self.not_resent
    }

    /// Tells whether the request may have taken effect although it failed, and could not safely be sent again.
    #[must_use]
    pub const fn is_indeterminate(&self) -> bool {
        self.indeterminate
    }
}

/// What a retry does with an answer of its protocol.
pub trait Answer<Res>: Send + Sync + 'static {
    /// Marks an answer with how its operation ended, where the protocol has a place for it.
    fn mark(&self, answer: &mut Res, ending: Ending);

    /// Drops an answer that gives way to a resend, and keeps its head.
    fn give_up(&self, answer: Res) -> Option<ResponseHead>;
}

impl<Res> Answer<Res> for Plain {
    fn mark(&self, _: &mut Res, _: Ending) {}

    fn give_up(&self, _: Res) -> Option<ResponseHead> {
        None
    }
}

impl<B> Answer<Response<B>> for Http {
    fn mark(&self, answer: &mut Response<B>, ending: Ending) {
        answer.extensions_mut().insert(ending);
    }

    fn give_up(&self, answer: Response<B>) -> Option<ResponseHead> {
        let (head, _) = answer.into_parts();
        Some(ResponseHead::new(head.status, head.headers))
    }
}

impl<Res, C, F> Answer<Res> for Refined<C, F>
where
    C: Answer<Res>,
    F: Send + Sync + 'static,
{
    fn mark(&self, answer: &mut Res, ending: Ending) {
        self.inner().mark(answer, ending);
    }

    fn give_up(&self, answer: Res) -> Option<ResponseHead> {
        self.inner().give_up(answer)
    }
}
