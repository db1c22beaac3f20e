//! Laws on who is woken.

use super::case::{AT_ONCE, Inner, Laws, Subject};
use mamparo_core::clock;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::time::sleep;

/// How long an answer takes here: shorter than any timeout or hedge delay.
const SHORT: Duration = Duration::from_millis(1);

impl<Req: Send + 'static, Res: Send + 'static> Laws<Req, Res> {
    /// Asserts that who waits for the inner's readiness, or for a slot of it, is woken when it comes.
    ///
    /// # Panics
    ///
    /// Panics if not.
    pub async fn assert_wakes<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let case = self.case([], usize::MAX, &build);
        case.door.close();
        let waiting = tokio::spawn(case.call());
        tokio::task::yield_now().await;
        let start = clock::now();
        case.door.open();
        let answer = waiting.await.expect("a call without a panic");
        assert!(answer.is_ok(), "a call failed though the inner got ready");
        assert!(
            start.elapsed() < AT_ONCE,
            "a call was not woken when the inner got ready"
        );

        let case = self.case([self.answer().after(SHORT)], 1, &build);
        let start = clock::now();
        let (holder, waiting) = (tokio::spawn(case.call()), tokio::spawn(case.call()));
        let holder = holder.await.expect("a call without a panic");
        let waiting = waiting.await.expect("a call without a panic");
        assert!(
            holder.is_ok() && waiting.is_ok(),
            "a call failed though a slot came free"
        );
        assert!(
            start.elapsed() < 2 * AT_ONCE,
            "a call was not woken when a slot came free"
        );
    }

    /// Asserts that of several wakers the last one is woken, as when a future moves between tasks.
    ///
    /// # Panics
    ///
    /// Panics if it is not.
    pub async fn assert_last_waker_is_woken<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let mut case = self.case([self.answer().after(SHORT)], usize::MAX, build);
        case.door.close();
        if let Some(woken) = last_of_two(|cx| case.outer.poll_ready(cx)) {
            case.door.open();
            assert!(woken.is(), "the last waker of poll_ready was not woken");
            let polled = case
                .outer
                .poll_ready(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_ready(), "not ready though the inner got ready");
        }
        let mut call = pin!(case.outer.call((case.request)()));
        let in_call = last_of_two(|cx| call.as_mut().poll(cx));
        case.door.open();
        let woken = in_call.filter(|_| case.script.started() == 0);
        assert!(
            woken.is_none_or(|woken| woken.is()),
            "the last waker of a call in its gate was not woken"
        );

        let woken = last_of_two(|cx| call.as_mut().poll(cx)).expect("an answer that takes time");
        sleep(AT_ONCE).await;
        assert!(woken.is(), "the last waker of a call was not woken");
    }
}

/// Polls with one waker, then with another; returns the second if both found it pending.
fn last_of_two<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<Arc<Woken>> {
    let (first, last) = (Arc::<Woken>::default(), Arc::<Woken>::default());
    for woken in [&first, &last] {
        let waker = Waker::from(Arc::clone(woken));
        if poll(&mut Context::from_waker(&waker)).is_ready() {
            return None;
        }
    }
    Some(last)
}

#[derive(Debug, Default)]
struct Woken(AtomicBool);

impl Woken {
    fn is(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}
