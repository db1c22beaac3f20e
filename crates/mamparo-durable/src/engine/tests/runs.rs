use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use mamparo::rate_limit::RateLimitPolicy;
use mamparo_core::clock::WallClock;
use mamparo_core::{BoxError, clock};

use super::support::{Heard, MINUTE, Paused, Sent, ended, id, on, payment, policies, stored};
use crate::backend::{Begun, QueueName, Request};
use crate::engine::Engine;
use crate::machine::{Answer, End, Note, Outcome, State};
use crate::memory::Memory;

/// The provider refuses twice, then does it.
#[tokio::test(start_paused = true)]
async fn refusals_are_sent_again_each_a_wait_later_under_its_own_key() {
    let clock = Paused::new();
    let engine = on(&Memory::new(clock), clock).build().unwrap();
    let sent = Sent::default();
    let provider = {
        let sent = sent.clone();
        tower::service_fn(move |request: Request| {
            sent.note(&request);
            let outcome = if request.attempt < 3 {
                Outcome::Refused
            } else {
                Outcome::Success
            };
            async move { Ok::<_, BoxError>(Some(request.answer(outcome))) }
        })
    };
    let running = engine.run(provider);
    let began = clock::now();
    assert_eq!(engine.begin(payment("p")).await.unwrap(), Begun::New);
    assert!(matches!(
        engine.begin(payment("p")).await.unwrap(),
        Begun::Exists(_)
    ));
    let record = ended(&engine, "p").await;
    assert_eq!(
        (record.progress.state, record.progress.attempt_current),
        (State::Succeeded, 3)
    );
    assert_eq!(sent.keys(), ["p#1", "p#2", "p#3"]);
    for (number, at) in (0..).zip(sent.instants()) {
        let late = (at - began)
            .checked_sub(MINUTE * number)
            .expect("never early");
        assert!(late < Duration::from_millis(20), "{number}: {late:?}");
    }
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_answered_by_messages_tells_the_answers_itself() {
    let clock = Paused::new();
    let engine = on(&Memory::new(clock), clock).build().unwrap();
    let sent = Sent::default();
    let publisher = {
        let sent = sent.clone();
        tower::service_fn(move |request: Request| {
            sent.note(&request);
            async { Ok::<_, BoxError>(None) }
        })
    };
    let running = engine.run(publisher);
    engine.begin(payment("p").sent()).await.unwrap();
    let refused = Answer::new(1, 0, Outcome::Refused).with_reason("CANCELLED");
    assert_eq!(
        engine.answer(&id("p"), refused.clone()).await.unwrap(),
        Note::Applied
    );
    assert_eq!(
        engine.answer(&id("p"), refused).await.unwrap(),
        Note::Already
    );
    tokio::time::sleep(MINUTE + Duration::from_secs(1)).await;
    assert_eq!(sent.keys(), ["p#2"]);
    assert_eq!(stored(&engine, "p").await.progress.state, State::InFlight);
    let done = Answer::new(2, 0, Outcome::Success);
    assert_eq!(engine.answer(&id("p"), done).await.unwrap(), Note::Applied);
    assert_eq!(ended(&engine, "p").await.progress.end, Some(End::Answered));
    let declined = payment("q").answered(Answer::new(1, 0, Outcome::Declined));
    engine.begin(declined).await.unwrap();
    assert_eq!(ended(&engine, "q").await.progress.end, Some(End::Declined));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_operator_fires_moves_cancels_and_resolves_what_waits() {
    let clock = Paused::new();
    let engine = on(&Memory::new(clock), clock).build().unwrap();
    let refusing = tower::service_fn(async |request: Request| {
        Ok::<_, BoxError>(Some(request.answer(Outcome::Refused)))
    });
    let running = engine.run(refusing);
    for name in ["now", "moved", "cancelled", "resolved"] {
        engine.begin(payment(name)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        engine.fire_now(&id("now"), None).await.unwrap(),
        Note::Applied
    );
    let later = engine.runner().now().plus(MINUTE * 10);
    assert_eq!(
        engine.move_to(&id("moved"), later, None).await.unwrap(),
        Note::Applied
    );
    let why = || Some("by hand".into());
    assert_eq!(
        engine.cancel(&id("cancelled"), why()).await.unwrap(),
        Note::Applied
    );
    assert_eq!(
        engine.resolve(&id("resolved"), why()).await.unwrap(),
        Note::Applied
    );
    assert_eq!(
        engine.cancel(&id("nobody"), None).await.unwrap(),
        Note::Unknown
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stored(&engine, "now").await.progress.attempt_current, 2);
    assert_eq!(
        stored(&engine, "moved").await.progress.next_fire_at,
        Some(later)
    );
    assert_eq!(
        stored(&engine, "cancelled").await.progress.end,
        Some(End::Cancelled)
    );
    assert_eq!(
        stored(&engine, "resolved").await.progress.end,
        Some(End::Resolved)
    );
    let history = engine.history(&id("now"), 0, 100).await.unwrap();
    assert!(
        history
            .iter()
            .any(|event| event.cause.as_str() == "fired now")
    );
    let status = engine.status().await.unwrap();
    assert_eq!(
        (status.dead(), status.lag(), status.down.len()),
        (0, Duration::ZERO, 0)
    );
    assert!(status.oldest().is_some_and(|age| age < MINUTE));
    running.stop().await.unwrap();
}

/// Neither an attempt nor a delivery is spent, and the stop does not last longer than it may.
#[tokio::test(start_paused = true)]
async fn a_stop_gives_back_what_it_could_not_finish() {
    let clock = Paused::new();
    let memory = Memory::new(clock);
    let heard = Arc::new(Heard::default());
    let engine = on(&memory, clock).listener(heard.clone()).build().unwrap();
    let stuck = tower::service_fn(async |_: Request| {
        std::future::pending::<()>().await;
        Ok::<_, BoxError>(None)
    });
    let running = engine.run(stuck);
    engine.begin(payment("p")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let requests = engine.backend().queue(QueueName::Requests);
    assert_eq!(requests.depth().await.unwrap().taken, 1);
    let began = clock::now();
    running.stop().await.unwrap();
    assert!(clock::now() - began <= Duration::from_secs(5));
    let taken = requests.take(9, MINUTE).await.unwrap();
    assert_eq!((taken.len(), taken[0].number), (1, 1));
    let record = stored(&engine, "p").await;
    assert_eq!(
        (
            record.progress.attempt_current,
            record.progress.postponements
        ),
        (1, 0)
    );
    assert!(heard.kinds().is_empty(), "{:?}", heard.kinds());
}

/// A lease of a message that is still being handled is renewed.
#[tokio::test(start_paused = true)]
async fn a_request_that_takes_longer_than_its_lease_is_sent_once() {
    let clock = Paused::new();
    let engine = on(&Memory::new(clock), clock).build().unwrap();
    let sent = Sent::default();
    let slow = {
        let sent = sent.clone();
        tower::service_fn(move |request: Request| {
            sent.note(&request);
            async move {
                tokio::time::sleep(Duration::from_secs(30)).await;
                Ok::<_, BoxError>(Some(request.answer(Outcome::Success)))
            }
        })
    };
    let running = engine.run(slow);
    engine.begin(payment("p")).await.unwrap();
    ended(&engine, "p").await;
    assert_eq!(sent.keys(), ["p#1"]);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_resolved_meanwhile_is_not_sent() {
    let clock = Paused::new();
    let engine = on(&Memory::new(clock), clock).build().unwrap();
    engine.begin(payment("p")).await.unwrap();
    assert_eq!(engine.resolve(&id("p"), None).await.unwrap(), Note::Applied);
    let sent = Sent::default();
    let provider = {
        let sent = sent.clone();
        tower::service_fn(move |request: Request| {
            sent.note(&request);
            async { Ok::<_, BoxError>(None) }
        })
    };
    let running = engine.run(provider);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(sent.keys(), [""; 0]);
    assert_eq!(engine.status().await.unwrap().queues[2].1.ready, 0);
    running.stop().await.unwrap();
}

/// A clock that someone sets back by so many minutes.
#[derive(Clone, Debug)]
struct SetBack(Paused, Arc<AtomicU64>);

impl WallClock for SetBack {
    fn now(&self) -> SystemTime {
        let minutes = u32::try_from(self.1.load(Ordering::Relaxed)).unwrap();
        self.0.now() - MINUTE * minutes
    }
}

/// What waits fires when the clock says so, late and not early; what comes anew is not held up, nor is a rate.
#[tokio::test(start_paused = true)]
async fn a_clock_that_steps_back_an_hour_makes_waits_longer_and_loses_nothing() {
    let clock = SetBack(Paused::new(), Arc::default());
    let rate = RateLimitPolicy::per(Duration::from_secs(1), 10)
        .burst(1)
        .max_wait(MINUTE);
    let engine = Engine::builder(Memory::new(clock.clone()).backend())
        .wall_clock(clock.clone())
        .policies(policies())
        .rate(rate.build().unwrap());
    let engine = engine.build().unwrap();
    let sent = Sent::default();
    let running = engine.run(sent.provider());
    for number in 0..20 {
        let refused = Answer::new(1, 0, Outcome::Refused);
        let begins = payment(&format!("p{number}")).answered(refused);
        engine.begin(begins).await.unwrap();
    }
    tokio::time::sleep(MINUTE / 2).await;
    clock.1.store(60, Ordering::Relaxed);
    engine.begin(payment("new")).await.unwrap();
    tokio::time::sleep(MINUTE * 59).await;
    assert_eq!(sent.keys(), ["new#1"]);
    tokio::time::sleep(MINUTE * 3).await;
    let mut keys = sent.keys();
    keys.sort();
    keys.dedup();
    assert_eq!((keys.len(), sent.keys().len()), (21, 21));
    for number in 0..20 {
        let record = ended(&engine, &format!("p{number}")).await;
        assert_eq!(record.progress.end, Some(End::Answered));
    }
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_nobody_holds_any_more_sends_nothing() {
    let clock = Paused::new();
    let engine = on(&Memory::new(clock), clock).build().unwrap();
    let sent = Sent::default();
    drop(engine.run(sent.provider()));
    tokio::time::sleep(MINUTE).await;
    engine.begin(payment("p")).await.unwrap();
    tokio::time::sleep(MINUTE).await;
    assert!(sent.keys().is_empty());
}
