//! Readiness in the hand of the test.

use crate::BoxError;
use crate::sync::lock;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tower_service::Service;

/// Opens, closes or breaks the readiness of the services behind it.
///
/// ```
/// use mamparo_testkit::service::{Door, Script, Step, ready};
/// use tower_service::Service;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let door = Door::closed();
/// let mut service = door.before(Script::new([Step::answer(1)]));
/// door.open();
/// ready(&mut service).await.unwrap();
/// assert_eq!(service.call("in").await.unwrap(), 1);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Door(Arc<Mutex<Leaf>>);

#[derive(Debug)]
struct Leaf {
    state: State,
    waiting: Vec<Waker>,
}

#[derive(Clone, Debug)]
enum State {
    Open,
    Closed,
    Broken(String),
}

impl Door {
    /// Makes an open door: what is behind it is asked itself.
    #[must_use]
    pub fn opened() -> Self {
        Self::new(State::Open)
    }

    /// Makes a closed door: what is behind it is pending.
    #[must_use]
    pub fn closed() -> Self {
        Self::new(State::Closed)
    }

    /// Puts the door before a service; one door may stand before several.
    #[must_use]
    pub fn before<S>(&self, inner: S) -> Doored<S> {
        Doored {
            door: self.clone(),
            inner,
        }
    }

    /// Opens the door and wakes who waits.
    pub fn open(&self) {
        self.turn(State::Open);
    }

    /// Closes the door: who asks from now on is pending until it opens.
    pub fn close(&self) {
        self.turn(State::Closed);
    }

    /// Breaks the door: readiness fails with this text; who waits is woken.
    pub fn fail(&self, why: impl Into<String>) {
        self.turn(State::Broken(why.into()));
    }

    fn new(state: State) -> Self {
        Self(Arc::new(Mutex::new(Leaf {
            state,
            waiting: Vec::new(),
        })))
    }

    fn turn(&self, state: State) {
        let mut leaf = lock(&self.0);
        leaf.state = state;
        let waiting = std::mem::take(&mut leaf.waiting);
        drop(leaf);
        waiting.iter().for_each(Waker::wake_by_ref);
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Result<(), BoxError>> {
        let mut leaf = lock(&self.0);
        match leaf.state.clone() {
            State::Open => Poll::Ready(Ok(())),
            State::Broken(why) => Poll::Ready(Err(why.into())),
            State::Closed => {
                leaf.waiting.push(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// A service behind a [`Door`].
#[derive(Clone, Debug)]
pub struct Doored<S> {
    door: Door,
    inner: S,
}

impl<S, Req> Service<Req> for Doored<S>
where
    S: Service<Req, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.door.poll(cx) {
            Poll::Ready(Ok(())) => self.inner.poll_ready(cx),
            other => other,
        }
    }

    fn call(&mut self, request: Req) -> S::Future {
        self.inner.call(request)
    }
}
