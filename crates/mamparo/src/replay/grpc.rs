//! gRPC's requests: HTTP's, numbered by the attempts before.

use ::http::Request;
use http_body::Body;
use mamparo_core::grpc::{Codes, GRPC_PREVIOUS_RPC_ATTEMPTS, Grpc};
use mamparo_core::{BoxError, NotResent};

use super::http::{number, split};
use super::{HttpHeld, Replay, ReplayBody, Safety};

impl<B> Replay<Request<B>> for Grpc
where
    B: Body + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Wire = Request<ReplayBody<B>>;
    type Held = HttpHeld<B>;

    fn split(&self, request: Request<B>, keep: Option<usize>) -> (Self::Wire, Option<HttpHeld<B>>) {
        split(&GRPC_PREVIOUS_RPC_ATTEMPTS, request, keep)
    }

    fn again(
        &self,
        held: HttpHeld<B>,
        more: bool,
    ) -> Result<(Self::Wire, Option<HttpHeld<B>>), NotResent> {
        held.again(more)
    }

    fn beside(
        &self,
        held: HttpHeld<B>,
        more: bool,
    ) -> Result<(Self::Wire, Option<HttpHeld<B>>), NotResent> {
        held.beside(more)
    }

    // "Calls are not assumed to be idempotent" (gRFC A6); UNAVAILABLE says that this one was not done.
    fn safety(&self, _: &Request<B>) -> Safety {
        Safety::UNSAFE.with_listed(Codes::UNAVAILABLE)
    }

    fn method<'a>(&self, request: &'a Request<B>) -> Option<&'a str> {
        Some(request.uri().path())
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn number(&self, wire: &mut Self::Wire, attempt: u32) {
        number(&GRPC_PREVIOUS_RPC_ATTEMPTS, wire, attempt.saturating_sub(1));
    }
}
