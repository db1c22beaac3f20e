//! In which form an error is answered, and what an answer is told besides.

use http::{HeaderValue, Method, Request, Response};
use mamparo_core::Ending;
use mamparo_core::grpc::is_grpc;

use super::RejectionPolicy;
use crate::problem::{Noted, Problem, is_exhausted};

const EXHAUSTED: HeaderValue = HeaderValue::from_static("exhausted");

/// The form in which a request's error is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `application/problem+json`.
    Problem,
    /// Its headers only: the request was HEAD.
    Head,
    /// Trailers: alone, or after what has been sent.
    Grpc,
}

impl Form {
    /// Tells by what a request asks, and in what it is written.
    #[inline]
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        if request.method() == Method::HEAD {
            return Self::Head;
        }
        if is_grpc(request.headers()) {
            Self::Grpc
        } else {
            Self::Problem
        }
    }
}

/// Writes what a caller of HTTP's is told.
#[cold]
pub(super) fn write(policy: &RejectionPolicy, problem: &Problem) -> Response<String> {
    let mut response = problem.answer(policy.jitter(), policy.names_dependencies());
    if problem.are_attempts_spent() {
        mark_exhausted(policy, &mut response);
    }
    response
}

/// Marks a response that the handler hands on from an operation whose attempts are spent, or has made of its error; returns
/// that one's problem, whose cause nobody has heard of.
#[inline]
pub(super) fn hand_on<B>(policy: &RejectionPolicy, response: &mut Response<B>) -> Option<Noted> {
    let noted: Option<Noted> = response.extensions_mut().remove();
    let spent = Ending::of(response).is_some_and(is_exhausted);
    if spent || noted.as_ref().is_some_and(|it| it.0.are_attempts_spent()) {
        mark_exhausted(policy, response);
    }
    noted
}

fn mark_exhausted<B>(policy: &RejectionPolicy, response: &mut Response<B>) {
    if let Some(name) = policy.exhausted() {
        // A response whose header map is full goes without.
        let _full = response.headers_mut().try_insert(name, EXHAUSTED);
    }
}
