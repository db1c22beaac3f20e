//! One request, until it is answered in some way.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, Response};
use mamparo_core::shard::Held;
use mamparo_core::{BoxError, CallContext, Event, What};
use pin_project::pin_project;

use super::answer::{Form, hand_on, write};
use super::layer::Shared;
use super::{RejectionBody, grpc};
use crate::problem::{Noted, Problem, tell};

/// The future of a request whose error becomes a response.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct RejectionFuture<F> {
    #[pin]
    state: State<F>,
    form: Form,
    shared: Held<Shared>,
}

#[pin_project(project = Now)]
enum State<F> {
    /// The inner service works.
    Calling(#[pin] F),
    /// The inner service was not ready for good; its error, until it is answered.
    Failed(Option<BoxError>),
}

impl<F> RejectionFuture<F> {
    #[inline]
    pub(super) const fn calling(future: F, form: Form, shared: Held<Shared>) -> Self {
        Self {
            state: State::Calling(future),
            form,
            shared,
        }
    }

    #[cold]
    pub(super) const fn failed(error: BoxError, form: Form, shared: Held<Shared>) -> Self {
        Self {
            state: State::Failed(Some(error)),
            form,
            shared,
        }
    }
}

impl<F, B, E> Future for RejectionFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<RejectionBody<B>>, Infallible>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let error = match this.state.project() {
            Now::Calling(future) => match ready!(future.poll(cx)) {
                Ok(mut response) => {
                    let shared = this.shared;
                    if let Some(noted) = hand_on(&shared.policy, &mut response) {
                        shared.hear(&noted);
                    }
                    return Poll::Ready(Ok(response.map(|body| match this.form {
                        Form::Grpc => RejectionBody::grpc(body, shared.clone()),
                        Form::Problem | Form::Head => RejectionBody::inner(body),
                    })));
                }
                Err(error) => error.into(),
            },
            Now::Failed(error) => match error.take() {
                Some(error) => error,
                None => return Poll::Pending, // polled after its end
            },
        };
        let response = this.shared.answer(&*error, *this.form);
        Poll::Ready(Ok(response.map(RejectionBody::ours)))
    }
}

impl Shared {
    #[cold]
    fn answer(&self, error: &(dyn Error + 'static), form: Form) -> Response<String> {
        match form {
            Form::Grpc => grpc::alone(self.trailers(error)),
            Form::Problem => write(&self.policy, &self.tell(error)),
            Form::Head => write(&self.policy, &self.tell(error)).map(|_| String::new()),
        }
    }

    /// The trailers that end an answer of gRPC's.
    #[cold]
    pub(super) fn trailers(&self, error: &(dyn Error + 'static)) -> HeaderMap {
        grpc::trailers(&self.policy, &self.tell(error), error)
    }

    /// Says what the caller is told, and reports what it is not.
    fn tell(&self, error: &(dyn Error + 'static)) -> Problem {
        let problem = tell(error, self.policy.timeout_status());
        self.report(error, &problem);
        problem
    }

    /// Reports what a handler has answered itself.
    #[cold]
    fn hear(&self, noted: &Noted) {
        if let Some(cause) = noted.0.source() {
            self.report(cause, &noted.0);
        }
    }

    fn report(&self, error: &(dyn Error + 'static), problem: &Problem) {
        let status = problem.status();
        let what = What::ErrorAnswered { error, status };
        Event::report(self.observer.as_ref(), &CallContext::current(), what);
    }
}

impl<F> fmt::Debug for RejectionFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectionFuture")
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}
