//! How an answer reaches the caller, the dependency's own or another, and how it is marked.

use http::{HeaderName, HeaderValue, Response};
use mamparo_core::Plain;
use mamparo_core::classify::Refined;
use mamparo_core::http::Http;

use super::places::Place;
use super::{FallbackBody, FallbackFailed, FellBack};

/// How answers of a protocol reach the caller: `Res` are the dependency's, `Sub` those of what stands in for it.
pub trait Serve<Res, Sub>: Send + Sync + 'static {
    /// What the caller gets.
    type Out;

    /// Hands on the dependency's own answer; `failed` says why there is no better one, if one was asked for.
    fn own(&self, answer: Res, failed: Option<FallbackFailed>) -> Self::Out;

    /// Hands on an answer of the fallback, marked, where the protocol has a place for it.
    ///
    /// The place is held until the answer is over, as far as the protocol tells.
    fn other(&self, answer: Sub, mark: Mark<'_>) -> Self::Out;
}

/// What an answer of a fallback is marked with, and holds.
#[derive(Debug)]
pub struct Mark<'a> {
    pub(super) fell_back: FellBack,
    pub(super) header: Option<&'a (HeaderName, HeaderValue)>,
    pub(super) place: Option<Place>,
}

impl Mark<'_> {
    /// Returns how the operation failed for which the fallback stands in.
    #[must_use]
    pub const fn fell_back(&self) -> FellBack {
        self.fell_back
    }

    /// Returns the header that the policy wants on the answer.
    #[must_use]
    pub const fn header(&self) -> Option<&(HeaderName, HeaderValue)> {
        self.header
    }

    /// Takes the fallback's place, to be dropped when the answer is over; left here, it is given back now.
    #[must_use]
    pub const fn take_place(&mut self) -> Option<Place> {
        self.place.take()
    }
}

impl<Res> Serve<Res, Res> for Plain {
    type Out = Res;

    #[inline]
    fn own(&self, answer: Res, _: Option<FallbackFailed>) -> Res {
        answer
    }

    fn other(&self, answer: Res, _: Mark<'_>) -> Res {
        answer
    }
}

impl<A, B> Serve<Response<A>, Response<B>> for Http {
    type Out = Response<FallbackBody<A, B>>;

    #[inline]
    fn own(&self, answer: Response<A>, failed: Option<FallbackFailed>) -> Self::Out {
        let mut answer = answer.map(FallbackBody::own);
        if let Some(failed) = failed {
            answer.extensions_mut().insert(failed);
        }
        answer
    }

    fn other(&self, answer: Response<B>, mark: Mark<'_>) -> Self::Out {
        let mut answer = answer.map(|body| FallbackBody::other(body, mark.place));
        answer.extensions_mut().insert(mark.fell_back);
        if let Some((name, value)) = mark.header {
            // A response whose header map is full goes without.
            let _full = answer.headers_mut().try_insert(name, value.clone());
        }
        answer
    }
}

impl<Res, Sub, C, F> Serve<Res, Sub> for Refined<C, F>
where
    C: Serve<Res, Sub>,
    F: Send + Sync + 'static,
{
    type Out = C::Out;

    #[inline]
    fn own(&self, answer: Res, failed: Option<FallbackFailed>) -> C::Out {
        self.inner().own(answer, failed)
    }

    fn other(&self, answer: Sub, mark: Mark<'_>) -> C::Out {
        self.inner().other(answer, mark)
    }
}
