//! Who plays in the tests: the peer, the breaker before it, and who hears of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mamparo_core::{
    BoxError, CallContext, Deadline, Event, Kind, Observer, Plain, Rejection, Resend, Verdict,
    What, clock,
};
use mamparo_testkit::service::{Script, Step};
use tokio::task::JoinHandle;
use tower::{Layer, ServiceExt};

use crate::breaker::{
    Breaker, BreakerBuilder, BreakerHandle, BreakerLayer, BreakerPolicy, BreakerState, One, Ramp,
    Rates, Snapshot,
};

pub(super) type Peer = Script<u32, u32>;

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Opens at one failure, for 5 s sharp; closes at once after two of up to three probes.
pub(super) fn policy() -> BreakerBuilder {
    BreakerPolicy::builder()
        .consecutive_failures(1)
        .open_wait_jitter(0.0)
        .ramp(Ramp::none())
}

/// Opens by what happens in the window only.
pub(super) fn by_window() -> BreakerBuilder {
    policy().no_consecutive_failures()
}

/// A breaker before a peer that answers by script.
#[derive(Clone)]
pub(super) struct Rig {
    pub(super) peer: Peer,
    pub(super) layer: BreakerLayer<Plain>,
    pub(super) handle: BreakerHandle,
    pub(super) heard: Heard,
    service: Breaker<Peer, Plain, One>,
}

impl Rig {
    pub(super) fn new(policy: BreakerBuilder) -> Self {
        let peer = Script::new([]).otherwise(|| Step::answer(7));
        let heard = Heard::default();
        let layer = BreakerLayer::new(policy.build().unwrap(), Plain::idempotent())
            .dependency("catalog")
            .observer(Arc::new(heard.clone()));
        Self {
            handle: layer.handle(),
            service: layer.layer(peer.clone()),
            peer,
            layer,
            heard,
        }
    }

    /// Makes a call, whatever the peer's script says.
    pub(super) async fn call(&self) -> Result<u32, BoxError> {
        self.service.clone().oneshot(1).await
    }

    /// Makes a call that the peer answers as told.
    pub(super) async fn plays(&self, step: Step<u32>) -> Result<u32, BoxError> {
        self.peer.push(step);
        self.call().await
    }

    /// Makes a call that fails.
    pub(super) async fn fails(&self) -> BoxError {
        self.plays(Step::error("down")).await.unwrap_err()
    }

    /// Makes so many calls that fail or go well, in that order.
    pub(super) async fn plays_all(&self, good: &[bool]) {
        for good in good {
            let step = if *good {
                Step::answer(7)
            } else {
                Step::error("down")
            };
            drop(self.plays(step).await);
        }
    }

    /// Makes a call on a task of its own, and lets it get as far as it can.
    pub(super) async fn starts(&self, step: Step<u32>) -> JoinHandle<Result<u32, BoxError>> {
        self.peer.push(step);
        let service = self.service.clone();
        let call = tokio::spawn(service.oneshot(1));
        tokio::task::yield_now().await;
        call
    }

    /// Makes a call that is dropped after a while.
    pub(super) async fn cancels(&self, after: Duration) {
        self.peer.push(Step::hang());
        let call = tokio::time::timeout(after, self.call());
        assert!(call.await.is_err(), "it had its end before");
    }

    /// Opens it, and waits until the wait is over.
    pub(super) async fn opens_and_waits(&self) {
        self.fails().await;
        assert_eq!(self.state(), BreakerState::Open);
        tokio::time::sleep(5 * SECOND).await;
    }

    pub(super) async fn is_rejected(&self) -> bool {
        let result = self.call().await;
        result.is_err_and(|error| rejection(&error).is_breaker_open())
    }

    pub(super) fn state(&self) -> BreakerState {
        self.handle.state()
    }

    pub(super) fn read(&self) -> Snapshot {
        self.handle.snapshot()
    }

    /// Calls, failures and slow calls of the window.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let Rates {
            calls,
            failures,
            slow,
            ..
        } = self.read().rates;
        (calls, failures, slow)
    }
}

pub(super) fn rejection(error: &BoxError) -> &Rejection {
    Rejection::of(&**error).expect("a rejection")
}

/// An error that a classifier takes for one of that kind.
pub(super) fn judged(kind: Kind) -> impl Fn(Result<&u32, &BoxError>, Verdict) -> Verdict + Clone {
    move |outcome, verdict| match outcome {
        Ok(_) => verdict,
        Err(_) => Verdict::failure(kind, Resend::Never),
    }
}

/// Runs a call with a deadline, as a layer further out does that does not cut it.
pub(super) async fn within<T>(limit: Duration, call: impl Future<Output = T>) -> T {
    let deadline = Deadline::after(clock::now(), limit);
    let mut context = CallContext::current().with_deadline(deadline);
    let mut call = std::pin::pin!(call);
    std::future::poll_fn(|cx| context.enter(|| call.as_mut().poll(cx))).await
}

/// Hears what a breaker reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let text = match event.what {
            What::BreakerTransition(change) => {
                let to = change.to.map_or("gone", BreakerState::as_str);
                let key = change.key.as_deref().unwrap_or_default();
                format!("{key}{}>{to}: {}", change.from, change.cause.as_str())
            }
            What::Rejected(rejection) => format!("rejected: {rejection}"),
            What::Shadowed(rejection) => format!("shadowed: {rejection}"),
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

impl Heard {
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The changes of state only.
    pub(super) fn changes(&self) -> Vec<String> {
        let mut all = self.all();
        all.retain(|text| text.contains('>'));
        all
    }
}
