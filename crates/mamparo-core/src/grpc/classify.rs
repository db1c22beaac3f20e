//! Which answers are failures, and which of them may be sent again.

use http::{HeaderMap, Response, StatusCode};
use http_body::Body;

use super::{Code, Pushback, is_grpc};
use crate::classify::{Classify, End, Ends, Head, Outcome, Settle, known_error};
use crate::http::GuardedBody;
use crate::{Answer, BoxError, Ending, Resend, ResponseHead, Verdict};

/// Judges gRPC's answers.
///
/// | status | verdict |
/// |---|---|
/// | `OK` | success |
/// | `UNAVAILABLE` | unavailable |
/// | `RESOURCE_EXHAUSTED` | throttled |
/// | `DEADLINE_EXCEEDED` | timeout |
/// | `UNKNOWN`, `INTERNAL`, `DATA_LOSS` | server |
/// | `CANCELLED` | other |
/// | all others | client: the dependency did its part |
///
/// A status in the head is final, and may be sent again if the request's method lists it: a response does not tell of
/// which method it is. The `UNAVAILABLE` that a page of a proxy's stands for (502, 503, 504, 429) is less: the server
/// behind it may have done what it was asked for, so it is sent again only where the method bears that. A head without
/// one commits the call (gRFC A6): its status is in the trailers, and is not sent again.
/// A stream that its reader drops says nothing of the dependency. [`Pushback`] is obeyed: exactly so long, or not at all.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "it has no settings: what may be sent again is the method's to say"
)]
pub struct Grpc;

/// Says what the end of a gRPC answer means: its trailers decide.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "it has no settings")]
pub struct GrpcEnds;

fn with_status(code: Code, headers: &HeaderMap) -> Verdict {
    let Some(kind) = code.kind() else {
        return Verdict::SUCCESS;
    };
    let verdict = Verdict::failure(kind, Resend::IfListed(code)).with_code(code);
    match Pushback::of(headers) {
        None => verdict,
        Some(Pushback::After(wait)) => verdict.after_exactly(wait),
        // The code stays: among hedges, one that ends the operation does so all the same.
        Some(Pushback::Stop) => verdict.forbidden().with_resend(verdict.resend()),
    }
}

fn of_error(error: &BoxError) -> Verdict {
    let code = Code::of_error(error);
    let verdict = known_error(error).unwrap_or_else(|| {
        let failure = |kind| Verdict::failure(kind, Resend::Never);
        code.kind().map_or(Verdict::SUCCESS, failure)
    });
    // What nobody knows says less than the verdict's kind.
    if verdict.kind().is_some() && code != Code::Unknown {
        return verdict.with_code(code);
    }
    verdict
}

impl<B: 'static> Classify<Response<B>> for Grpc {
    fn head(&self, outcome: Result<&Response<B>, &BoxError>) -> Head {
        let response = match outcome {
            Ok(response) => response,
            // An error that nobody knows proves nothing about the request: it is not sent again.
            Err(error) => return Head::last(of_error(error)),
        };
        let headers = response.headers();
        let http = response.status();
        let code = Code::of_headers(headers);
        if code.is_none() && http == StatusCode::OK && is_grpc(headers) {
            return Head::open(Verdict::SUCCESS);
        }
        let code = code.unwrap_or_else(|| Code::from_http(http));
        let verdict = with_status(code, headers);
        if code == Code::Unavailable && http != StatusCode::OK {
            // Not a gRPC server's answer, but a proxy's: it does not know what became of the request.
            return Head::last(verdict.with_resend(Resend::IfIdempotent));
        }
        Head::last(verdict)
    }
}

impl Ends for GrpcEnds {
    fn end(&self, _: Verdict, end: End<'_>) -> Verdict {
        let verdict = match end {
            End::Trailers(trailers) => {
                let none = HeaderMap::new();
                let trailers = trailers.unwrap_or(&none);
                let code = Code::of_headers(trailers).unwrap_or(Code::Unknown);
                with_status(code, trailers)
            }
            End::Error(error) => of_error(error),
            End::Dropped => Verdict::IGNORED,
        };
        // The head has committed the call.
        if verdict.kind().is_some() {
            return verdict.with_resend(Resend::Never);
        }
        verdict
    }
}

impl<B> Outcome<Response<B>> for Grpc
where
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    type Out<G: Settle> = Response<GuardedBody<B, G, GrpcEnds>>;

    fn tie<G: Settle>(&self, response: Response<B>, head: Head, mut guard: G) -> Self::Out<G> {
        if head.last {
            guard.settle(head.verdict);
            return response.map(GuardedBody::settled);
        }
        if response.body().is_end_stream() {
            // Neither a status nor a place for one.
            guard.settle(GrpcEnds.end(head.verdict, End::Trailers(None)));
            return response.map(GuardedBody::settled);
        }
        response.map(|body| GuardedBody::open(body, guard, head.verdict, GrpcEnds))
    }

    #[inline]
    fn untied<G: Settle>(response: Response<B>) -> Self::Out<G> {
        response.map(GuardedBody::settled)
    }
}

impl<B> Answer<Response<B>> for Grpc {
    fn mark(&self, answer: &mut Response<B>, ending: Ending) {
        answer.extensions_mut().insert(ending);
    }

    fn give_up(&self, answer: Response<B>) -> Option<ResponseHead> {
        let (head, _) = answer.into_parts();
        Some(ResponseHead::new(head.status, head.headers))
    }
}
