//! What the laws have in common: samples, the inner service, and how to call.

use crate::BoxError;
use crate::body::ScriptedBody;
use crate::service::{Door, Doored, Script, Step, Strict, ready};
use http::{Request, Response};
use std::fmt::{self, Debug};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tower_service::Service;

/// More calls than any layer has places by default.
pub(super) const MANY: usize = 300;

/// No time at all, but for the grain of tokio's timers.
pub(super) const AT_ONCE: Duration = Duration::from_millis(2);

/// Longer than any default limit: what still runs then hangs.
const HANGS: Duration = Duration::from_secs(3600);

/// How many seconds a layer has to let a call pass again: more than a breaker's longest open time.
const RECOVERY_SECONDS: usize = 300;

/// The service that a layer is put around: a script, behind a door, strictly checked.
pub type Inner<Wire, Res> = Strict<Doored<Script<Wire, Res, ()>>>;

/// A service that the laws can drive: what axum, too, asks of a layer's service.
pub trait Subject<Req>:
    Service<
        Req,
        Response: Send + 'static,
        Error: Into<BoxError> + Send + 'static,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S, Req> Subject<Req> for S where
    S: Service<
            Req,
            Response: Send + 'static,
            Error: Into<BoxError> + Send + 'static,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// The laws, for layers that take such requests over services that give such answers.
///
/// Needs a paused clock: `#[tokio::test(start_paused = true)]`.
pub struct Laws<Req, Res> {
    request: fn() -> Req,
    answer: fn() -> Res,
}

impl Laws<u32, u32> {
    /// The laws for plain layers, with numbers.
    #[must_use]
    pub fn plain() -> Self {
        Self::new(|| 1, || 2)
    }
}

impl Laws<Request<ScriptedBody>, Response<ScriptedBody>> {
    /// The laws for HTTP layers: GET without a body, 200 with one.
    #[must_use]
    pub fn http() -> Self {
        Self::new(
            || Request::new(ScriptedBody::empty()),
            || Response::new(ScriptedBody::new("ok")),
        )
    }
}

impl<Req: Send + 'static, Res: Send + 'static> Laws<Req, Res> {
    /// The laws with other samples: a request that a layer lets pass, and an answer that it finds good.
    pub fn new(request: fn() -> Req, answer: fn() -> Res) -> Self {
        Self { request, answer }
    }

    /// Asserts every law but [`assert_gate`](Self::assert_gate); `build` makes a fresh layer each time.
    ///
    /// # Panics
    ///
    /// Panics if a law is broken.
    pub async fn assert_all<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        self.assert_passes_a_healthy_call(&build).await;
        self.assert_strict_readiness(&build).await;
        self.assert_clone_is_not_ready(&build).await;
        self.assert_readiness_error_ends(&build).await;
        self.assert_idle_holds_nothing(&build).await;
        self.assert_holds_no_slot_while_waiting(&build).await;
        self.assert_drop_releases(&build).await;
        self.assert_panic_releases(&build).await;
        self.assert_wakes(&build).await;
        self.assert_last_waker_is_woken(&build).await;
    }

    /// Puts a layer around a script: these steps, then good answers.
    pub(super) fn case<S, Wire>(
        &self,
        steps: impl IntoIterator<Item = Step<Res>>,
        slots: usize,
        build: impl Fn(Inner<Wire, Res>) -> S,
    ) -> Case<S, Req, Wire, Res>
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let answer = self.answer;
        let script = Script::noting(|_: &Wire| (), steps).otherwise(move || Step::answer(answer()));
        let door = Door::opened();
        let inner = Strict::with_slots(door.before(script.clone()), slots);
        Case {
            outer: build(inner.clone()),
            script,
            door,
            inner,
            request: self.request,
        }
    }

    pub(super) fn answer(&self) -> Step<Res> {
        Step::answer((self.answer)())
    }
}

impl<Req, Res> Debug for Laws<Req, Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Laws")
    }
}

/// One layer around one script.
pub(super) struct Case<S, Req, Wire, Res> {
    pub(super) outer: S,
    pub(super) script: Script<Wire, Res, ()>,
    pub(super) door: Door,
    pub(super) inner: Inner<Wire, Res>,
    pub(super) request: fn() -> Req,
}

impl<S, Req, Wire, Res> Case<S, Req, Wire, Res>
where
    S: Subject<Req>,
    Req: Send + 'static,
{
    /// Returns a future that makes one whole call on a clone of the layer's service.
    pub(super) fn call(
        &self,
    ) -> impl Future<Output = Result<S::Response, BoxError>> + Send + use<S, Req, Wire, Res> {
        let (mut outer, request) = (self.outer.clone(), (self.request)());
        async move { ended(whole_call(&mut outer, request)).await }
    }

    /// Makes one whole call on the layer's service itself.
    pub(super) async fn call_itself(&mut self) -> Result<S::Response, BoxError> {
        ended(whole_call(&mut self.outer, (self.request)())).await
    }

    /// Waits until a call succeeds again, as it must when nothing is wrong any more.
    pub(super) async fn assert_recovers(&self, after: &str) {
        for _ in 0..RECOVERY_SECONDS {
            if self.call().await.is_ok() {
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
        panic!("no call passes any more {after}: a place leaked");
    }
}

/// Polls ready, then calls.
pub(super) async fn whole_call<S, Req>(outer: &mut S, request: Req) -> Result<S::Response, BoxError>
where
    S: Subject<Req>,
{
    ready(outer).await.map_err(Into::into)?;
    outer.call(request).await.map_err(Into::into)
}

/// Waits for a future that must end in some way.
pub(super) async fn ended<T>(future: impl Future<Output = T>) -> T {
    let end = timeout(HANGS, future).await;
    end.unwrap_or_else(|_| panic!("a call hangs: nothing ended it in an hour"))
}
