//! The checker of readiness.

use crate::sync::lock;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use tower_service::Service;

/// A service that panics when it is called on an instance that was not polled ready just before.
///
/// One readiness pays for one call, and a clone is not ready. Instances that are ready and not yet called
/// are counted, so a test can see that no ready slot is held through a backoff.
///
/// [`Strict::with_slots`] lets only so many instances be ready or have a call running at once, as
/// tower's `ConcurrencyLimit` does: the others are pending, and are woken when a slot comes back.
///
/// ```should_panic
/// use mamparo_testkit::service::{Script, Step, Strict};
/// use tower_service::Service;
///
/// let mut service = Strict::new(Script::new([Step::answer(1)]));
/// drop(service.call("never polled ready"));
/// ```
#[derive(Debug)]
pub struct Strict<S> {
    inner: S,
    slots: Slots,
    readiness: Option<Slot>,
}

impl<S> Strict<S> {
    /// Checks this service; any number of its clones may be ready at once.
    pub fn new(inner: S) -> Self {
        Self::with_slots(inner, usize::MAX)
    }

    /// Checks this service; at most `slots` of its clones may be ready or have a call running at once.
    pub fn with_slots(inner: S, slots: usize) -> Self {
        Self {
            inner,
            slots: Slots::new(slots),
            readiness: None,
        }
    }

    /// Returns how many instances are ready and not yet called.
    #[must_use]
    pub fn ready_slots(&self) -> usize {
        lock(&self.slots.0).ready
    }

    /// Returns the checked service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S: Clone> Clone for Strict<S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            slots: self.slots.clone(),
            readiness: None,
        }
    }
}

impl<S, Req> Service<Req> for Strict<S>
where
    S: Service<Req>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = StrictFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let before = self.readiness.take();
        ready!(self.inner.poll_ready(cx))?;
        let slot = match before {
            Some(slot) => slot,
            None => ready!(self.slots.poll_take(cx)),
        };
        self.readiness = Some(slot);
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let Some(mut slot) = self.readiness.take() else {
            panic!("an instance was called that had not been polled ready since its last call")
        };
        slot.spend();
        StrictFuture {
            call: Box::pin(self.inner.call(request)),
            slot: Some(slot),
        }
    }
}

/// The future of a checked call: it keeps the slot until the call ends or is dropped.
#[derive(Debug)]
pub struct StrictFuture<F> {
    call: Pin<Box<F>>,
    slot: Option<Slot>,
}

impl<F: Future> Future for StrictFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        assert!(self.slot.is_some(), "a call was polled after its end");
        let output = ready!(self.call.as_mut().poll(cx));
        self.slot = None;
        Poll::Ready(output)
    }
}

#[derive(Clone, Debug)]
struct Slots(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    ready: usize,
    waiting: Vec<Waker>,
}

impl Slots {
    fn new(free: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free,
            ready: 0,
            waiting: Vec::new(),
        })))
    }

    fn poll_take(&self, cx: &Context<'_>) -> Poll<Slot> {
        let mut state = lock(&self.0);
        if state.free == 0 {
            state.waiting.push(cx.waker().clone());
            return Poll::Pending;
        }
        state.free -= 1;
        state.ready += 1;
        Poll::Ready(Slot {
            slots: self.clone(),
            spent: false,
        })
    }
}

/// One instance's readiness, then its call. Gives the slot back on drop.
#[derive(Debug)]
struct Slot {
    slots: Slots,
    spent: bool,
}

impl Slot {
    fn spend(&mut self) {
        self.spent = true;
        lock(&self.slots.0).ready -= 1;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = lock(&self.slots.0);
        state.free += 1;
        if !self.spent {
            state.ready -= 1;
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.iter().for_each(Waker::wake_by_ref);
    }
}
