//! Calls at once, and what is left of them.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use mamparo_core::{BoxError, Classify, Plain, Verdict};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Door, Script, Step, Strict, ready};
use proptest::prelude::*;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};

use super::super::*;
use super::cast::*;

/// Row E8, of load shedding.
#[tokio::test(start_paused = true)]
async fn what_would_be_one_call_too_many_is_rejected_and_not_sent() {
    let peer: Script<u32, u32> = Script::new([]).otherwise(Step::hang);
    let (rules, layer) = (Rules::default(), shed(policy().max_in_flight(3)));
    let layer = layer.observer(Arc::new(rules.clone()));
    let jobs = layer.layer(peer.clone());
    let running: Vec<_> = (0..3)
        .map(|job| tokio::spawn(jobs.clone().oneshot(job)))
        .collect();
    tokio::task::yield_now().await;
    assert_eq!(layer.in_flight(), Some(3));
    let error = jobs.clone().oneshot(9).await.unwrap_err();
    assert_eq!(error.to_string(), "jobs: overloaded: not sent");
    assert_shed::<u32>(Err(error));
    assert_eq!(
        (peer.started(), rules.heard()),
        (3, vec![("in_flight", None)])
    );
    for call in running {
        call.abort();
        assert!(call.await.is_err());
    }
    assert_eq!(layer.in_flight(), Some(0));
}

/// Law 9: a place is held until the answer's body is over.
#[tokio::test(start_paused = true)]
async fn a_place_is_held_until_the_body_ends_or_is_dropped() {
    let answer = || {
        let frames = Frames::new().data("a").wait(millis(10)).data("b");
        Response::new(ScriptedBody::new(frames))
    };
    let peer: Script<Request<()>, Response<ScriptedBody>, ()> =
        Script::noting(|_| (), []).otherwise(move || Step::answer(answer()));
    let layer = LoadShedLayer::http(policy().max_in_flight(1).build().unwrap());
    let jobs = layer.layer(peer);
    let first = jobs.clone().oneshot(Request::new(())).await.unwrap();
    assert_shed(jobs.clone().oneshot(Request::new(())).await.map(drop));
    assert!(first.into_body().collect().await.is_ok());
    let second = jobs.clone().oneshot(Request::new(())).await.unwrap();
    drop(second);
    assert!(jobs.oneshot(Request::new(())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_classifier_that_panics_leaves_no_place_taken() {
    let refuse = |_: Result<&u32, &BoxError>, _: Verdict| -> Verdict { panic!("on purpose") };
    let protocol = Classify::<u32>::refine(Plain::idempotent(), refuse);
    let layer = LoadShedLayer::new(policy().max_in_flight(1).build().unwrap(), protocol);
    let peer: Script<u32, u32> = Script::new([]).otherwise(|| Step::answer(1));
    for _ in 0..3 {
        let call = tokio::spawn(layer.layer(peer.clone()).oneshot(1));
        assert!(call.await.is_err());
        assert_eq!(layer.in_flight(), Some(0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_shed_leaves_no_place_of_the_inner_service_taken() {
    let peer: Script<u32, u32> = Script::new([]).otherwise(Step::hang);
    let inner = Strict::new(peer);
    let jobs = shed(policy().max_in_flight(1)).layer(inner.clone());
    let running = tokio::spawn(jobs.clone().oneshot(1));
    tokio::task::yield_now().await;
    let mut next = jobs.clone();
    ready(&mut next).await.unwrap();
    assert_shed(next.call(2).await);
    assert_eq!(inner.ready_slots(), 0);
    running.abort();
}

/// Law 3: nor a place in its queue, which would be given to an instance that nobody uses.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_shed_leaves_no_place_in_the_inner_services_queue_taken() {
    let queue = ConcurrencyLimit::new(Script::new([]).otherwise(|| Step::answer(1)), 1);
    let layer = shed(policy().refuse_when_not_ready());
    let (mut used, mut idle) = (layer.layer(queue.clone()), layer.layer(queue.clone()));
    ready(&mut used).await.unwrap();
    let running = used.call(1);
    ready(&mut idle).await.unwrap(); // pending inside, behind the call that runs
    assert!(idle.call(2).await.is_err());
    assert!(running.await.is_ok());
    let next = tokio::time::timeout(Duration::from_secs(1), queue.oneshot(3)).await;
    assert!(
        next.is_ok(),
        "the place went to an instance that is not used"
    );
}

/// Row T10: as tower's own layer does, by a setting.
#[tokio::test(start_paused = true)]
async fn a_call_is_shed_while_the_inner_service_is_not_ready_if_told_to() {
    let (door, peer) = (Door::closed(), Script::new([Step::answer(1)]));
    let mut jobs = shed(policy().refuse_when_not_ready()).layer(door.before(peer.clone()));
    ready(&mut jobs).await.unwrap();
    assert_shed(jobs.call(1).await);
    door.open();
    assert_eq!(jobs.ready().await.unwrap().call(2).await.unwrap(), 1);
    assert_eq!(peer.requests(), [2]);
}

/// What a test does with the calls that are under way.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Begins,
    Cancels,
    Panics,
    Fails,
    Answers,
}

proptest! {
    /// However calls end, no more run at once than may, and none is counted when all are over.
    #[test]
    fn no_more_run_than_may_and_all_places_come_back(
        limit in 1_usize..5,
        turns in prop::collection::vec(
            prop::sample::select(vec![Turn::Begins, Turn::Begins, Turn::Cancels, Turn::Panics, Turn::Fails, Turn::Answers]),
            1..60,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let peer: Script<u32, u32> = Script::new([]);
            let layer = shed(policy().max_in_flight(limit));
            let jobs = layer.layer(peer.clone());
            let mut running = Vec::new();
            for turn in turns {
                let after = |step: Step<u32>| step.after(Duration::from_millis(1));
                match turn {
                    Turn::Begins => peer.push(Step::hang()),
                    Turn::Cancels => {
                        if let Some(call) = running.pop() {
                            let call: tokio::task::JoinHandle<_> = call;
                            call.abort();
                        }
                        continue;
                    }
                    Turn::Panics => peer.push(after(Step::panic())),
                    Turn::Fails => peer.push(after(Step::error("down"))),
                    Turn::Answers => peer.push(after(Step::answer(1))),
                }
                running.push(tokio::spawn(jobs.clone().oneshot(1)));
                tokio::task::yield_now().await;
                peer.clear();
                assert!(peer.running() <= limit, "{} run", peer.running());
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            running.iter().for_each(tokio::task::JoinHandle::abort);
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert_eq!((peer.running(), layer.in_flight()), (0, Some(0)));
            assert!(peer.max_running() <= limit);
        });
    }
}

/// Row J11.
#[test]
fn nonsense_is_refused_when_the_policy_is_built() {
    let refused = |policy: LoadShedBuilder| policy.build().unwrap_err().setting();
    let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3_600));
    let some = policy().max_in_flight(1);
    assert_eq!(refused(policy()), "load_shed");
    assert_eq!(refused(policy().max_in_flight(0)), "max_in_flight");
    assert_eq!(
        refused(policy().queue_time(Duration::ZERO, second)),
        "queue_time"
    );
    assert_eq!(refused(policy().queue_time(second, second)), "queue_time");
    assert_eq!(refused(policy().throttle(0.9, second)), "k");
    assert_eq!(refused(policy().throttle(f64::NAN, second)), "k");
    assert_eq!(refused(policy().throttle(2.0, millis(999))), "window");
    assert_eq!(refused(policy().throttle(2.0, hour + second)), "window");
    assert_eq!(refused(some.max_rejection(1.1)), "max_rejection");
    assert_eq!(refused(some.max_rejection(f64::NAN)), "max_rejection");
    assert_eq!(refused(some.shares([0.5, 0.4, 0.9, 1.0])), "shares");
    assert_eq!(refused(some.shares([0.0, 0.4, 0.9, 1.0])), "shares");
    assert!(
        policy()
            .max_in_flight(usize::MAX)
            .throttle(1.0, hour)
            .build()
            .is_ok()
    );
}
