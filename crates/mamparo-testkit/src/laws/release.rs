//! Laws on what a call takes, and gives back however it ends.

use super::case::{Case, Inner, Laws, MANY, Subject, ended};
use crate::service::{Step, ready};
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::time::sleep;

/// How long an operation is watched for slots held between its attempts.
const WATCHED: Duration = Duration::from_secs(60);

impl<Req: Send + 'static, Res: Send + 'static> Laws<Req, Res> {
    /// Asserts that a call dropped before its first poll, or while it runs, gives everything back.
    ///
    /// The inner call stops with it, hundreds of drops leave no place taken, and calls pass afterwards
    /// (rows A4, D1, E7).
    ///
    /// # Panics
    ///
    /// Panics if not.
    pub async fn assert_drop_releases<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        for poll in [false, true] {
            let hangs = (0..MANY).map(|_| Step::hang());
            let mut case = self.case(hangs, usize::MAX, &build);
            for _ in 0..MANY {
                case.drop_a_call(poll).await;
            }
            let running = case.script.running();
            assert_eq!(
                running, 0,
                "the inner call runs on after the outer was dropped"
            );
            case.script.clear();
            case.assert_recovers("after calls were dropped").await;
            drop(case.outer);
            assert_eq!(
                case.inner.ready_slots(),
                0,
                "a dropped call left a ready slot"
            );
        }
    }

    /// Asserts that a call that panics gives everything back (rows A7, E7).
    ///
    /// # Panics
    ///
    /// Panics if not.
    pub async fn assert_panic_releases<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let panics = (0..MANY).map(|_| Step::panic());
        let case = self.case(panics, usize::MAX, build);
        for _ in 0..MANY {
            // A layer that refuses meanwhile is within its rights.
            drop(tokio::spawn(case.call()).await);
        }
        assert_eq!(case.script.running(), 0, "a call runs on after its panic");
        case.script.clear();
        case.assert_recovers("after calls panicked").await;
    }

    /// Asserts that no ready slot is held while no call runs: through a backoff, say (row P-B15).
    ///
    /// # Panics
    ///
    /// Panics if one is.
    pub async fn assert_holds_no_slot_while_waiting<S, Wire>(
        &self,
        build: impl Fn(Inner<Wire, Res>) -> S,
    ) where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let errors = (0..4).map(|_| Step::error("down"));
        let case = self.case(errors, usize::MAX, build);
        let call = tokio::spawn(case.call());
        let tick = Duration::from_millis(1);
        for _ in 0..WATCHED.as_millis() {
            sleep(tick).await;
            if call.is_finished() {
                break;
            }
            let held = case.script.running() == 0 && case.inner.ready_slots() > 0;
            assert!(!held, "a ready slot is held while nothing is sent");
        }
        call.abort();
    }
}

impl<S, Req, Wire, Res> Case<S, Req, Wire, Res>
where
    S: Subject<Req>,
    Req: Send + 'static,
{
    /// Makes a call and drops it: before its first poll, or after it.
    async fn drop_a_call(&mut self, poll: bool) {
        if ended(ready(&mut self.outer)).await.is_err() {
            return;
        }
        let mut call = pin!(self.outer.call((self.request)()));
        if poll {
            let mut cx = Context::from_waker(Waker::noop());
            // A layer may refuse by now; only what it holds matters here.
            drop(call.as_mut().poll(&mut cx));
        }
    }
}
