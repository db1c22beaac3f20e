//! Laws on readiness.

use super::case::{AT_ONCE, Inner, Laws, MANY, Subject, ended};
use crate::service::{Step, ready};
use mamparo_core::clock;
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::time::{sleep, timeout};

impl<Req: Send + 'static, Res: Send + 'static> Laws<Req, Res> {
    /// Asserts that a call to a healthy inner service is sent once, succeeds, and waits for nothing.
    ///
    /// # Panics
    ///
    /// Panics if not.
    pub async fn assert_passes_a_healthy_call<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let case = self.case([], usize::MAX, build);
        let start = clock::now();
        assert!(case.call().await.is_ok(), "a healthy call failed");
        assert!(start.elapsed() < AT_ONCE, "a healthy call had to wait");
        assert_eq!(
            case.script.started(),
            1,
            "a healthy call was not sent exactly once"
        );
    }

    /// Asserts that every send goes to an instance that was polled ready just before (rows T1 to T3).
    ///
    /// Good, failing and late inner services, ready or pending at first, three calls on one instance.
    ///
    /// # Panics
    ///
    /// Panics if not.
    pub async fn assert_strict_readiness<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let late = Duration::from_secs(5);
        let error = || Step::error("down");
        let scripts = [
            vec![],
            vec![error()],
            vec![error(), error(), error(), error()],
            vec![
                self.answer().after(late),
                error(),
                self.answer().after(late),
            ],
        ];
        for steps in scripts {
            let mut case = self.case(steps, usize::MAX, &build);
            for _ in 0..3 {
                case.door.close();
                let door = case.door.clone();
                let opening = tokio::spawn(async move {
                    sleep(Duration::from_millis(1)).await;
                    door.open();
                });
                // What comes of it is the layer's own business; an unready send panics.
                drop(case.call_itself().await);
                drop(case.call_itself().await);
                opening.await.expect("the opening of a door");
            }
            assert!(case.script.started() > 0, "no call was ever sent");
        }
    }

    /// Asserts that a clone of a ready service is not taken for ready, nor spoils the original (row T9).
    ///
    /// # Panics
    ///
    /// Panics if it is.
    pub async fn assert_clone_is_not_ready<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let mut case = self.case([], usize::MAX, build);
        let is_ready = ended(ready(&mut case.outer)).await.is_ok();
        assert!(is_ready, "a healthy service is not ready");
        let slots = case.inner.ready_slots();
        let clone = case.call();
        assert!(case.inner.ready_slots() <= slots, "a clone took readiness");
        assert!(clone.await.is_ok(), "a clone's call failed");
        let original = case.outer.call((case.request)());
        assert!(ended(original).await.is_ok(), "the original's call failed");
    }

    /// Asserts that a readiness error ends the call at once, and that nothing is sent (row P-B15).
    ///
    /// # Panics
    ///
    /// Panics if not.
    pub async fn assert_readiness_error_ends<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let case = self.case([], usize::MAX, build);
        case.door.fail("torn down");
        let end = timeout(AT_ONCE, case.call()).await;
        assert!(end.is_ok(), "a readiness error did not end the call");
        let started = case.script.started();
        assert_eq!(started, 0, "a service was called whose readiness failed");
    }

    /// Asserts that services that are ready and never called take no place from others (row E7).
    ///
    /// # Panics
    ///
    /// Panics if they do.
    pub async fn assert_idle_holds_nothing<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let case = self.case([], usize::MAX, build);
        let mut idle = vec![case.outer.clone(); MANY];
        for service in &mut idle {
            let end = timeout(AT_ONCE, ready(service)).await;
            assert!(
                end.is_ok(),
                "services that are ready and idle keep others from being ready"
            );
        }
        let passed = case.call().await.is_ok();
        assert!(
            passed,
            "services that are ready and idle keep a call from passing"
        );
        drop(idle);
        assert_eq!(case.inner.ready_slots(), 0, "a ready slot leaked");
    }

    /// Asserts that a gate is ready although the inner is pending, and waits for it in the call.
    ///
    /// # Panics
    ///
    /// Panics if not.
    pub async fn assert_gate<S, Wire>(&self, build: impl Fn(Inner<Wire, Res>) -> S)
    where
        S: Subject<Req>,
        Wire: Send + 'static,
    {
        let mut case = self.case([], usize::MAX, build);
        case.door.close();
        let polled = case
            .outer
            .poll_ready(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready(), "a gate hangs on the inner's readiness");
        let call = tokio::spawn(case.outer.call((case.request)()));
        sleep(AT_ONCE).await;
        assert!(!call.is_finished(), "a gate did not wait for the inner");
        case.door.open();
        let answer = ended(call).await.expect("a call without a panic");
        assert!(
            answer.is_ok(),
            "a gate's call failed though the inner got ready"
        );
    }
}
