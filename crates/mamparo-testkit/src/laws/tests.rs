//! Each law is kept by the layers that do nothing, and catches the layer that breaks it.

use super::{Inner, Laws};
use crate::BoxError;
use crate::service::ready;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tower_service::Service;

type Plain = Inner<u32, u32>;
type Call = Pin<Box<dyn Future<Output = Result<u32, BoxError>> + Send>>;

/// What a bad layer does wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    SendsTwice,
    CallsFreshClone,
    ClonesReadiness,
    IgnoresReadinessErrors,
    ReservesWhenReady,
    BacksOffWithReadySlot,
    DetachesTheCall,
    LeaksItsPlace,
    PollsReadyByTimer,
    KeepsTheFirstWaker,
}

/// As many places as a bulkhead has by default.
const PLACES: usize = 64;

struct Bad {
    inner: Plain,
    wrong: Wrong,
    was_ready: bool,
    permits: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    running: Arc<AtomicUsize>,
    sleep: Option<Pin<Box<Sleep>>>,
}

fn bad(wrong: Wrong) -> impl Fn(Plain) -> Bad {
    move |inner| Bad {
        inner,
        wrong,
        was_ready: false,
        permits: Arc::new(Semaphore::new(PLACES)),
        permit: None,
        running: Arc::default(),
        sleep: None,
    }
}

impl Clone for Bad {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            wrong: self.wrong,
            was_ready: self.was_ready,
            permits: Arc::clone(&self.permits),
            permit: None,
            running: Arc::clone(&self.running),
            sleep: None,
        }
    }
}

impl Service<u32> for Bad {
    type Response = u32;
    type Error = BoxError;
    type Future = Call;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.wrong {
            Wrong::ClonesReadiness if self.was_ready => return Poll::Ready(Ok(())),
            Wrong::ReservesWhenReady if self.permit.is_none() => {
                match Arc::clone(&self.permits).try_acquire_owned() {
                    Ok(permit) => self.permit = Some(permit),
                    Err(_) => return Poll::Pending,
                }
            }
            _ => {}
        }
        let mut without_waker = Context::from_waker(Waker::noop());
        let polled = match self.wrong {
            Wrong::PollsReadyByTimer => self.inner.poll_ready(&mut without_waker),
            _ => self.inner.poll_ready(cx),
        };
        self.was_ready = polled.is_ready();
        match (self.wrong, polled) {
            (Wrong::IgnoresReadinessErrors, Poll::Ready(Err(_))) => Poll::Pending,
            (Wrong::PollsReadyByTimer, Poll::Pending) => {
                let sleep = self.sleep.insert(Box::pin(sleep(Duration::from_secs(1))));
                sleep.as_mut().poll(cx).map(Ok)
            }
            (_, polled) => polled,
        }
    }

    fn call(&mut self, request: u32) -> Call {
        self.was_ready = false;
        self.permit = None;
        match self.wrong {
            Wrong::CallsFreshClone => Box::pin(self.inner.clone().call(request)),
            Wrong::SendsTwice => Box::pin(sends_twice(self.inner.clone(), request)),
            Wrong::BacksOffWithReadySlot => {
                let call = self.inner.call(request);
                Box::pin(backs_off(self.inner.clone(), call, request))
            }
            Wrong::DetachesTheCall => {
                let call = tokio::spawn(self.inner.call(request));
                Box::pin(async move { call.await? })
            }
            Wrong::LeaksItsPlace => {
                let call = self.inner.call(request);
                Box::pin(leaks(Arc::clone(&self.running), call))
            }
            Wrong::KeepsTheFirstWaker => {
                let call = Box::pin(self.inner.call(request));
                Box::pin(FirstWaker { call, waker: None })
            }
            _ => Box::pin(self.inner.call(request)),
        }
    }
}

async fn sends_twice(mut inner: Plain, request: u32) -> Result<u32, BoxError> {
    ready(&mut inner).await?.call(request).await?;
    ready(&mut inner).await?.call(request).await
}

async fn backs_off(
    mut inner: Plain,
    call: impl Future<Output = Result<u32, BoxError>>,
    request: u32,
) -> Result<u32, BoxError> {
    if let Ok(answer) = call.await {
        return Ok(answer);
    }
    let ready = ready(&mut inner).await?;
    sleep(Duration::from_millis(100)).await;
    ready.call(request).await
}

async fn leaks(
    running: Arc<AtomicUsize>,
    call: impl Future<Output = Result<u32, BoxError>>,
) -> Result<u32, BoxError> {
    if running.fetch_add(1, Ordering::SeqCst) >= PLACES {
        running.fetch_sub(1, Ordering::SeqCst);
        return Err("full".into());
    }
    let result = call.await;
    running.fetch_sub(1, Ordering::SeqCst);
    result
}

struct FirstWaker<F> {
    call: Pin<Box<F>>,
    waker: Option<Waker>,
}

impl<F: Future> Future for FirstWaker<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let first = self.waker.get_or_insert_with(|| cx.waker().clone()).clone();
        self.call.as_mut().poll(&mut Context::from_waker(&first))
    }
}

/// A gate as law 2 has it: ready at once, and the future drives the inner service.
#[derive(Clone)]
struct Gate(Plain);

impl Service<u32> for Gate {
    type Response = u32;
    type Error = BoxError;
    type Future = Call;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u32) -> Call {
        let mut inner = self.0.clone();
        Box::pin(async move { ready(&mut inner).await?.call(request).await })
    }
}

#[tokio::test(start_paused = true)]
async fn layers_that_add_nothing_keep_every_law() {
    Laws::plain().assert_all(|inner| inner).await;
    Laws::http().assert_all(|inner| inner).await;
    Laws::plain().assert_all(Gate).await;
    Laws::plain().assert_gate(Gate).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "not sent exactly once")]
async fn a_call_sent_twice_is_caught() {
    Laws::plain()
        .assert_passes_a_healthy_call(bad(Wrong::SendsTwice))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "had not been polled ready since its last call")]
async fn a_call_to_a_fresh_clone_is_caught() {
    Laws::plain()
        .assert_strict_readiness(bad(Wrong::CallsFreshClone))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "had not been polled ready since its last call")]
async fn readiness_that_is_cloned_is_caught() {
    Laws::plain()
        .assert_clone_is_not_ready(bad(Wrong::ClonesReadiness))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "a readiness error did not end the call")]
async fn a_swallowed_readiness_error_is_caught() {
    Laws::plain()
        .assert_readiness_error_ends(bad(Wrong::IgnoresReadinessErrors))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "idle keep others from being ready")]
async fn a_place_taken_when_ready_is_caught() {
    Laws::plain()
        .assert_idle_holds_nothing(bad(Wrong::ReservesWhenReady))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "held while nothing is sent")]
async fn a_ready_slot_held_through_a_backoff_is_caught() {
    let laws = Laws::plain();
    laws.assert_holds_no_slot_while_waiting(bad(Wrong::BacksOffWithReadySlot))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "runs on after the outer was dropped")]
async fn a_call_that_survives_its_drop_is_caught() {
    Laws::plain()
        .assert_drop_releases(bad(Wrong::DetachesTheCall))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "after calls were dropped: a place leaked")]
async fn a_place_that_leaks_at_a_drop_is_caught() {
    Laws::plain()
        .assert_drop_releases(bad(Wrong::LeaksItsPlace))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "after calls panicked: a place leaked")]
async fn a_place_that_leaks_at_a_panic_is_caught() {
    Laws::plain()
        .assert_panic_releases(bad(Wrong::LeaksItsPlace))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "not woken when the inner got ready")]
async fn a_call_that_waits_by_timer_is_caught() {
    Laws::plain()
        .assert_wakes(bad(Wrong::PollsReadyByTimer))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the last waker of a call was not woken")]
async fn a_future_that_keeps_its_first_waker_is_caught() {
    Laws::plain()
        .assert_last_waker_is_woken(bad(Wrong::KeepsTheFirstWaker))
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "a gate hangs on the inner's readiness")]
async fn a_gate_that_hangs_on_the_inner_is_caught() {
    Laws::plain().assert_gate(|inner| inner).await;
}
