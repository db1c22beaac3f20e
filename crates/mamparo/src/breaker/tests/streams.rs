//! Verdicts that end with the body.

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use mamparo_core::BoxError;
use mamparo_core::http::{GuardedBody, Http, HttpEnds};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, ServiceExt};

use super::cast::{SECOND, millis, policy};
use crate::breaker::{
    BreakerBuilder, BreakerGuard, BreakerHandle, BreakerLayer, BreakerState, One,
};

type Guarded = GuardedBody<ScriptedBody, BreakerGuard<Http, One>, HttpEnds>;

fn answer(status: u16, frames: Frames) -> Response<ScriptedBody> {
    let body = ScriptedBody::new(frames).without_hints();
    Response::builder().status(status).body(body).unwrap()
}

/// A breaker that lets one call through, and what that call was answered.
struct Before {
    layer: BreakerLayer<Http>,
}

impl Before {
    fn new(policy: BreakerBuilder) -> Self {
        let layer = BreakerLayer::http(policy.build().unwrap());
        Self { layer }
    }

    async fn answers(&self, answer: Response<ScriptedBody>) -> Response<Guarded> {
        let peer = Script::noting(|_: &Request<()>| (), [Step::answer(answer)]);
        let call = self.layer.layer(peer).oneshot(Request::new(()));
        call.await.unwrap()
    }

    fn handle(&self) -> BreakerHandle {
        self.layer.handle()
    }

    fn failures(&self) -> u32 {
        self.handle().snapshot().consecutive_failures
    }
}

async fn read(body: impl Body<Data = Bytes, Error = BoxError>) -> bool {
    std::pin::pin!(body).collect().await.is_ok()
}

/// Row P-C7: a failure is final at the head.
#[tokio::test(start_paused = true)]
async fn a_failure_counts_at_its_head() {
    let breaker = Before::new(policy());
    let failed = breaker.answers(answer(503, Frames::new().hang())).await;
    assert_eq!(breaker.handle().state(), BreakerState::Open);
    drop(failed);
    assert_eq!(breaker.handle().snapshot().late, 0, "it is heard once");
}

/// Row P-C7: for HTTP, who drops a good body has read enough.
#[tokio::test(start_paused = true)]
async fn a_good_head_counts_once_its_body_has_ended_broken_or_been_dropped() {
    let breaker = Before::new(policy().consecutive_failures(9));
    breaker.answers(answer(503, Frames::new())).await;
    let open = breaker
        .answers(answer(200, Frames::new().data("a").data("b")))
        .await;
    assert_eq!(breaker.failures(), 1, "the body may still break");
    assert!(read(open.into_body()).await);
    assert_eq!(breaker.failures(), 0);

    let broken = answer(200, Frames::new().data("a").error("reset"));
    assert!(!read(breaker.answers(broken).await.into_body()).await);
    assert_eq!(breaker.failures(), 1);
    drop(
        breaker
            .answers(answer(200, Frames::new().data("a").hang()))
            .await,
    );
    assert_eq!(breaker.failures(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_probes_place_is_taken_until_its_body_is_over() {
    let breaker = Before::new(policy().probes(1).successes_to_close(1));
    breaker.answers(answer(503, Frames::new())).await;
    tokio::time::sleep(5 * SECOND).await;
    let probe = breaker.answers(answer(200, Frames::new().data("a"))).await;
    let read_now = breaker.handle().snapshot();
    assert_eq!(
        (read_now.state, read_now.probes),
        (BreakerState::HalfOpen, 1)
    );
    assert!(read(probe.into_body()).await);
    assert_eq!(breaker.handle().state(), BreakerState::Closed);
}

/// How long a body takes is for its reader to say as much as for the dependency.
#[tokio::test(start_paused = true)]
async fn a_long_body_does_not_make_a_call_slow() {
    let breaker = Before::new(policy().slow_calls(millis(500), 1.0).minimum_calls(1));
    let long = answer(200, Frames::new().data("a").wait(9 * SECOND).data("b"));
    assert!(read(breaker.answers(long).await.into_body()).await);
    assert_eq!(breaker.handle().snapshot().rates.slow, 0);
}
