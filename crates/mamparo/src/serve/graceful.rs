//! A server's life, from its start to a stop that breaks nothing off.

use std::error::Error;
use std::fmt::{self, Display};
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use mamparo_core::BoxError;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::{Misconfigured, Readiness, StopPolicy};

type Flush = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs a server until it is told to stop, and then lets it finish what it has begun.
///
/// 1. it serves, while what it needs is looked for; a check that finds it [set up wrong](Misconfigured) ends it at once;
/// 2. told to stop, it is not ready any more, and still takes requests for a while ([`StopPolicy::delay`]);
/// 3. it takes no more connections, and finishes what is in flight, or cuts it at the [grace](StopPolicy::grace)'s end;
/// 4. telemetry is flushed.
///
/// It is told by any future, such as [`termination`](super::termination). The server is any that takes a future for its
/// shutdown: axum's `with_graceful_shutdown`, tonic's `serve_with_incoming_shutdown`.
///
/// What is cut are connections: the server's future is dropped. Tasks that it has spawned for them, as axum does, end with the
/// runtime, when `main` returns.
///
/// ```
/// use axum::Router;
/// use axum::routing::get;
/// use mamparo::serve::{self, Graceful, Readiness, Stopped, StopPolicy};
/// use tokio::net::TcpListener;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let readiness = Readiness::default();
/// let routes = Router::new()
///     .route("/", get(async || "fine"))
///     .layer(serve::http().readiness(readiness.clone()))
///     .route_service("/health/ready", readiness.clone());
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let told = async {}; // `serve::termination()?`, in earnest
/// let stopped = Graceful::new(readiness, StopPolicy::default())
///     .flush(async || println!("flushed"))
///     .run(told, |stop| axum::serve(listener, routes).with_graceful_shutdown(stop))
///     .await?;
/// assert_eq!(stopped, Stopped::Finished);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct Graceful {
    readiness: Readiness,
    policy: StopPolicy,
    flush: Vec<Box<dyn FnOnce() -> Flush + Send>>,
}

/// Resolves when a server must take no more connections; see [`Graceful::run`].
#[must_use = "a server that does not wait for it does not stop"]
#[derive(Debug)]
pub struct StopAccepting {
    told: oneshot::Receiver<()>,
}

impl Future for StopAccepting {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Whether it was told, or nobody is left to tell.
        Pin::new(&mut self.told).poll(cx).map(|_| ())
    }
}

/// How a server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// All that was in flight was finished.
    Finished,
    /// The grace was over, and what was still in flight was cut.
    Cut,
    /// It ended by itself, before it was told to.
    ByItself,
}

/// Why a server did not run to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// A check found it set up wrong.
    Misconfigured(Misconfigured),
    /// The server itself failed.
    Server(BoxError),
}

impl Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misconfigured(error) => error.fmt(f),
            Self::Server(error) => write!(f, "the server failed: {error}"),
        }
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Misconfigured(error) => error.source(),
            Self::Server(error) => error.source(),
        }
    }
}

impl Graceful {
    /// Begins with what the server needs, and how long it may take to stop.
    pub const fn new(readiness: Readiness, policy: StopPolicy) -> Self {
        Self {
            readiness,
            policy,
            flush: Vec::new(),
        }
    }

    /// Adds what is done when the server has stopped, in this order: telemetry is flushed, a pool closed.
    ///
    /// All of them together may take [as long](StopPolicy::flush) as the policy says.
    pub fn flush<F, Fut>(mut self, flush: F) -> Self
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.flush.push(Box::new(move || Box::pin(flush())));
        self
    }

    /// Runs the server until `told` resolves, and stops it.
    ///
    /// # Errors
    ///
    /// A check says that the server is set up wrong, or the server fails. Telemetry is flushed then, too.
    pub async fn run<S, F, E>(
        self,
        told: impl Future<Output = ()>,
        serve: S,
    ) -> Result<Stopped, ServeError>
    where
        S: FnOnce(StopAccepting) -> F,
        F: IntoFuture<Output = Result<(), E>>,
        E: Into<BoxError>,
    {
        let Self {
            readiness,
            policy,
            flush,
        } = self;
        let (stop, heard) = oneshot::channel();
        let serving = serve(StopAccepting { told: heard }).into_future();
        let stopped = stopping(&readiness, policy, told, serving, stop).await;
        readiness.stop();
        let flush_all = async {
            for flush in flush {
                flush().await;
            }
        };
        let _too_long = timeout(policy.flush(), flush_all).await;
        stopped
    }
}

async fn stopping<E: Into<BoxError>>(
    readiness: &Readiness,
    policy: StopPolicy,
    told: impl Future<Output = ()>,
    serving: impl Future<Output = Result<(), E>>,
    stop: oneshot::Sender<()>,
) -> Result<Stopped, ServeError> {
    let failed = |error: E| ServeError::Server(error.into());
    let mut serving = pin!(serving);
    let until_told = async {
        let mut told = pin!(told);
        match first(pin!(readiness.watch()), told.as_mut()).await {
            First::Left(Err(wrong)) => return Err(wrong),
            First::Left(Ok(())) => told.await,
            First::Right(()) => {}
        }
        readiness.stop();
        sleep(policy.delay()).await;
        Ok(())
    };
    match first(serving.as_mut(), pin!(until_told)).await {
        First::Left(ended) => return ended.map(|()| Stopped::ByItself).map_err(failed),
        First::Right(Err(wrong)) => return Err(ServeError::Misconfigured(wrong)),
        First::Right(Ok(())) => {}
    }
    // A server that does not listen any more has ended by itself.
    let _gone = stop.send(());
    match timeout(policy.grace(), serving).await {
        Ok(ended) => ended.map(|()| Stopped::Finished).map_err(failed),
        Err(_) => Ok(Stopped::Cut),
    }
}

enum First<L, R> {
    Left(L),
    Right(R),
}

/// Waits for whichever comes first; the left one if both do.
async fn first<L: Future, R: Future>(
    mut left: Pin<&mut L>,
    mut right: Pin<&mut R>,
) -> First<L::Output, R::Output> {
    poll_fn(|cx| {
        if let Poll::Ready(output) = left.as_mut().poll(cx) {
            return Poll::Ready(First::Left(output));
        }
        right.as_mut().poll(cx).map(First::Right)
    })
    .await
}

impl fmt::Debug for Graceful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graceful")
            .field("readiness", &self.readiness)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
