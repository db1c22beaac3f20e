//! One request, until it is answered.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use mamparo_core::BoxError;
use mamparo_core::gate::GateFuture;
use pin_project::pin_project;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tower_service::Service;

use super::IdempotencyBody;

/// The future of a request that may have a key.
///
/// When it is dropped while the handler of a keyed request works, a task finishes that run.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct IdempotencyFuture<S, B, R>
where
    S: Service<Request<IdempotencyBody<B>>>,
    B: Body,
    R: Body<Error: Send> + Send + 'static,
{
    #[pin]
    state: State<S, B, R>,
}

#[pin_project(project = Now)]
enum State<S, B, R>
where
    S: Service<Request<IdempotencyBody<B>>>,
    B: Body,
    R: Body<Error: Send> + Send + 'static,
{
    /// It has no key.
    Passed(#[pin] GateFuture<S, Request<IdempotencyBody<B>>>),
    /// It has one.
    Keyed(Keyed<Result<Response<IdempotencyBody<R>>, BoxError>>),
    /// It was refused at once; its answer, until it is given.
    Done(Option<Response<IdempotencyBody<R>>>),
}

/// A run in a box: its steps wait for a store, whose futures have no names.
pub(super) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A run, and what becomes of it when it is dropped.
struct Keyed<T: Send + 'static> {
    run: Option<Boxed<T>>,
    phase: Arc<Phase>,
    behind: Arc<Semaphore>,
    /// Set while it is polled, and so still set after a panic.
    polling: bool,
}

/// How far a run is, for whoever drops it.
#[derive(Debug, Default)]
pub(super) struct Phase {
    at: AtomicU8,
    caller_gone: AtomicBool,
}

const BEGINNING: u8 = 1;
const RUNNING: u8 = 2;

impl Phase {
    /// The store is asked for the key.
    pub(super) fn begin(&self) {
        self.at.store(BEGINNING, Ordering::Relaxed);
    }

    /// The handler works, or its answer is being stored.
    pub(super) fn run(&self) {
        self.at.store(RUNNING, Ordering::Relaxed);
    }

    /// Tells whether the caller went away before the handler ran.
    pub(super) fn is_caller_gone(&self) -> bool {
        self.caller_gone.load(Ordering::Relaxed)
    }

    fn has_begun(&self) -> bool {
        self.at.load(Ordering::Relaxed) != 0
    }
}

impl<S, B, R> IdempotencyFuture<S, B, R>
where
    S: Service<Request<IdempotencyBody<B>>>,
    B: Body,
    R: Body<Error: Send> + Send + 'static,
{
    #[inline]
    pub(super) const fn passed(future: GateFuture<S, Request<IdempotencyBody<B>>>) -> Self {
        Self {
            state: State::Passed(future),
        }
    }

    pub(super) const fn keyed(
        run: Boxed<Result<Response<IdempotencyBody<R>>, BoxError>>,
        phase: Arc<Phase>,
        behind: Arc<Semaphore>,
    ) -> Self {
        Self {
            state: State::Keyed(Keyed {
                run: Some(run),
                phase,
                behind,
                polling: false,
            }),
        }
    }

    pub(super) const fn done(response: Response<IdempotencyBody<R>>) -> Self {
        Self {
            state: State::Done(Some(response)),
        }
    }
}

impl<S, B, R> Future for IdempotencyFuture<S, B, R>
where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    B: Body,
    R: Body<Error: Send> + Send + 'static,
{
    type Output = Result<Response<IdempotencyBody<R>>, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            Now::Passed(future) => future.poll(cx).map(|result| {
                let response = result.map_err(Into::into)?;
                Ok(response.map(IdempotencyBody::untouched))
            }),
            Now::Keyed(keyed) => keyed.poll(cx),
            Now::Done(response) => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                None => Poll::Pending, // polled after its end
            },
        }
    }
}

impl<T: Send + 'static> Keyed<T> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let Some(run) = &mut self.run else {
            return Poll::Pending; // polled after its end
        };
        self.polling = true;
        let poll = run.as_mut().poll(cx);
        self.polling = false;
        if poll.is_ready() {
            self.run = None;
        }
        poll
    }
}

impl<T: Send + 'static> Drop for Keyed<T> {
    /// Finishes what was begun: a caller that went away comes back with the same key, and wants to find an answer.
    ///
    /// Here and not from the start, so that a handler runs in its caller's task, spans and deadline as long as that is there.
    /// A run that panicked is not touched again.
    fn drop(&mut self) {
        let begun = self.phase.has_begun() && !self.polling;
        let Some(run) = self.run.take().filter(|_| begun) else {
            return;
        };
        let place = Arc::clone(&self.behind).try_acquire_owned();
        if let (Ok(place), Ok(runtime)) = (place, Handle::try_current()) {
            self.phase.caller_gone.store(true, Ordering::Relaxed);
            runtime.spawn(async move {
                drop(run.await);
                drop(place);
            });
        }
    }
}

impl<S, B, R> fmt::Debug for IdempotencyFuture<S, B, R>
where
    S: Service<Request<IdempotencyBody<B>>>,
    B: Body,
    R: Body<Error: Send> + Send + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Passed(_) => "IdempotencyFuture::Passed",
            State::Keyed(_) => "IdempotencyFuture::Keyed",
            State::Done(_) => "IdempotencyFuture::Done",
        })
    }
}
