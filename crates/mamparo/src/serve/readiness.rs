//! Whether a server has what it needs, and its answer to whoever asks.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::{self, Display};
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response};
use mamparo_core::{
    Backoff, BoxError, CallContext, Event, InvalidSetting, Jitter, Observer, What, chain,
};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower_service::Service;

use crate::problem::{Problem, ProblemType};

/// As many checks as a server may have.
pub const MAX_CHECKS: usize = 64;

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

type Checking = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

/// Whether a server has what it needs to serve; clones are of the same server.
///
/// Not ready until each of its checks has succeeded once, and again when it stops. A check is repeated with backoff until it
/// succeeds, and not after that: a dependency that goes away later is the breakers' business, and an answer "not ready" of all
/// instances at once would turn its outage into everybody's.
///
/// It is a service that answers any request: 200, or 503 as a problem that lists what is not there. Requests are served
/// nonetheless: put it where the load balancer asks, `/health/ready`, outside of the layers that refuse.
///
/// ```
/// use axum::Router;
/// use axum::routing::get;
/// use http::Request;
/// use mamparo::serve::{self, Readiness};
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let readiness = Readiness::builder()
///     .check("database", async || Ok(())) // a connection, in earnest
///     .build()?;
/// let routes: Router = Router::new()
///     .route("/", get(async || "fine"))
///     .layer(serve::http())
///     .route_service("/health/ready", readiness.clone());
/// let ask = || routes.clone().oneshot(Request::get("/health/ready").body(String::new()).unwrap());
/// assert_eq!(ask().await?.status(), 503);
/// readiness.watch().await?; // `Graceful` does that
/// assert_eq!(ask().await?.status(), 200);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Readiness {
    state: Arc<State>,
}

struct State {
    checks: Vec<Check>,
    settings: Settings,
    stopping: AtomicBool,
}

#[derive(Clone)]
struct Settings {
    backoff: Backoff,
    limit: Duration,
    observer: Option<Arc<dyn Observer>>,
}

struct Check {
    name: &'static str,
    check: Box<dyn Fn() -> Checking + Send + Sync>,
    is_there: AtomicBool,
}

/// Settings of a [`Readiness`].
#[must_use]
pub struct ReadinessBuilder {
    checks: Vec<Check>,
    settings: Settings,
    backoff: Option<Backoff>,
}

/// Why a check failed, where no wait will mend it: the server is set up wrong, and must not start.
///
/// ```
/// use mamparo::serve::{Misconfigured, Readiness};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mamparo::InvalidSetting> {
/// let wrong = async || Err(Misconfigured::new("there is no database \"shop\"").into());
/// let readiness = Readiness::builder().check("database", wrong).build()?;
/// let error = readiness.watch().await.unwrap_err();
/// assert_eq!(error.to_string(), "database: set up wrong: there is no database \"shop\"");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Misconfigured {
    check: &'static str,
    source: BoxError,
}

impl Misconfigured {
    /// Says what is wrong.
    #[must_use]
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self {
            check: "",
            source: error.into(),
        }
    }

    /// Returns the check that found it.
    #[must_use]
    pub const fn check(&self) -> &'static str {
        self.check
    }
}

impl Display for Misconfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.check.is_empty() {
            write!(f, "{}: ", self.check)?;
        }
        write!(f, "set up wrong: {}", self.source)
    }
}

impl Error for Misconfigured {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

impl Readiness {
    /// Begins without a check; a check may take 2 s, and is repeated after 100 ms, up to 5 s later each time.
    pub fn builder() -> ReadinessBuilder {
        ReadinessBuilder {
            checks: Vec::new(),
            settings: Settings {
                backoff: Backoff::default(),
                limit: Duration::from_secs(2),
                observer: None,
            },
            backoff: None,
        }
    }

    /// Tells whether the server has what it needs, and is not stopping.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.is_stopping() && self.state.checks.iter().all(Check::is_there)
    }

    /// Tells whether the server stops.
    #[must_use]
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.state.stopping.load(Ordering::Relaxed)
    }

    /// Returns what is not there yet.
    #[must_use]
    pub fn waiting_for(&self) -> Vec<&'static str> {
        let checks = self.state.checks.iter();
        let missing = checks.filter(|check| !check.is_there());
        missing.map(|check| check.name).collect()
    }

    /// Says that the server stops: it is not ready from now on.
    pub fn stop(&self) {
        self.state.stopping.store(true, Ordering::Relaxed);
    }

    /// Repeats each check until it has succeeded, all of them side by side; [`Graceful`](super::Graceful) does so.
    ///
    /// # Errors
    ///
    /// A check says that the server is [set up wrong](Misconfigured), or panics.
    pub async fn watch(&self) -> Result<(), Misconfigured> {
        let mut checks = JoinSet::new();
        for at in 0..self.state.checks.len() {
            let state = Arc::clone(&self.state);
            checks.spawn(async move { state.until_there(at).await });
        }
        while let Some(ended) = checks.join_next().await {
            ended.unwrap_or_else(|panicked| Err(Misconfigured::new(panicked)))?;
        }
        Ok(())
    }

    fn answer(&self) -> Response<String> {
        if self.is_ready() {
            let mut response = Response::new(r#"{"status":"ready"}"#.to_owned());
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            return response;
        }
        let problem = Problem::new(ProblemType::NOT_READY).with_retry_later();
        let problem = match self.is_stopping() {
            true => problem.with_detail("the service stops"),
            false => {
                let names = self.waiting_for().into_iter().map(str::to_owned);
                let problem = problem.with_detail("the service waits for what it depends on");
                problem.with_member("waiting-for", names.collect::<Vec<_>>())
            }
        };
        problem.into_response()
    }
}

impl Default for Readiness {
    /// Ready from the start.
    fn default() -> Self {
        let builder = Self::builder();
        Self {
            state: Arc::new(State {
                checks: Vec::new(),
                settings: builder.settings,
                stopping: AtomicBool::new(false),
            }),
        }
    }
}

impl Check {
    fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }
}

impl State {
    async fn until_there(&self, at: usize) -> Result<(), Misconfigured> {
        let check = &self.checks[at];
        let (mut resend, mut wait, mut rng) = (0_u32, Duration::ZERO, fastrand::Rng::new());
        loop {
            let ended = match timeout(self.settings.limit, (check.check)()).await {
                Ok(ended) => ended,
                Err(elapsed) => Err(elapsed.into()),
            };
            let error = match ended {
                Ok(()) => {
                    check.is_there.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                Err(error) => error,
            };
            if chain::find::<Misconfigured>(&*error).is_some() {
                return Err(misconfigured(check.name, error));
            }
            resend = resend.saturating_add(1);
            wait = self.settings.backoff.wait(resend, wait, &mut rng);
            let (name, error) = (check.name, &*error);
            let what = What::CheckFailed { name, error, wait };
            Event::report(self.settings.observer.as_ref(), &CallContext::EMPTY, what);
            sleep(wait).await;
        }
    }
}

fn misconfigured(check: &'static str, error: BoxError) -> Misconfigured {
    let source = match error.downcast::<Misconfigured>() {
        Ok(found) => found.source,
        Err(other) => other,
    };
    Misconfigured { check, source }
}

impl ReadinessBuilder {
    /// Adds a check, whose name is told to whoever asks.
    ///
    /// It fails with any error while the dependency is not there, and with [`Misconfigured`] where no wait will help.
    pub fn check<F, Fut>(mut self, name: &'static str, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.checks.push(Check {
            name,
            check: Box::new(move || Box::pin(check())),
            is_there: AtomicBool::new(false),
        });
        self
    }

    /// Sets the waits between two tries of a check.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Sets how long one try of a check may take, 2 s by default.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.settings.limit = limit;
        self
    }

    /// Reports checks that fail to an observer.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.settings.observer = Some(observer);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses a limit of zero, more than [`MAX_CHECKS`] checks, and two of one name.
    pub fn build(self) -> Result<Readiness, InvalidSetting> {
        let Self {
            checks,
            mut settings,
            backoff,
        } = self;
        if settings.limit.is_zero() {
            let reason = "must be longer than zero: no check would succeed";
            return Err(InvalidSetting::new("limit", "0s", reason));
        }
        if checks.len() > MAX_CHECKS {
            return Err(InvalidSetting::new(
                "check",
                checks.len(),
                "must be 64 at most",
            ));
        }
        for (at, check) in checks.iter().enumerate() {
            if checks[..at].iter().any(|other| other.name == check.name) {
                let reason = "must have a name of its own";
                return Err(InvalidSetting::new("check", check.name, reason));
            }
        }
        settings.backoff = match backoff {
            Some(backoff) => backoff,
            None => Backoff::builder()
                .cap(Duration::from_secs(5))
                .jitter(Jitter::Equal)
                .build()?,
        };
        Ok(Readiness {
            state: Arc::new(State {
                checks,
                settings,
                stopping: AtomicBool::new(false),
            }),
        })
    }
}

impl<B> Service<Request<B>> for Readiness {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut response = self.answer();
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        if request.method() == Method::HEAD {
            response.body_mut().clear();
        }
        ready(Ok(response))
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness")
            .field("waiting_for", &self.waiting_for())
            .field("stopping", &self.is_stopping())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ReadinessBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.checks.iter().map(|check| check.name);
        f.debug_struct("ReadinessBuilder")
            .field("checks", &names.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
