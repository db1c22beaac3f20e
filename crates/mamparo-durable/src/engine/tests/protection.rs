use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use mamparo::rate_limit::RateLimitPolicy;
use mamparo_core::{BoxError, Dependency, Ending, Reason, Rejection, RetryError};

use super::support::{Heard, MINUTE, Paused, Sent, ended, id, on, payment, policies, stored};
use crate::backend::{Backend, Message, QueueName, Request};
use crate::engine::Engine;
use crate::handler::Gatekeeper;
use crate::machine::{Answer, Cause, End, Gate, Outcome, Record, State, Terms, Utc};
use crate::memory::Memory;
use crate::policy::{Policies, Policy, Wait};

/// Row: whatever fires at once, the dependency sees no more than its rate. 200 refusals in one instant, 10 a second.
#[tokio::test(start_paused = true)]
async fn a_herd_passes_at_the_rate_and_no_faster() {
    let clock = Paused::new();
    let second = Duration::from_secs(1);
    let rate = RateLimitPolicy::per(second, 10).burst(1).max_wait(MINUTE);
    let engine = on(&Memory::new(clock), clock).rate(rate.build().unwrap());
    let engine = engine.build().unwrap();
    let sent = Sent::default();
    let running = engine.run(sent.provider());
    for number in 0..200 {
        let refused = Answer::new(1, 0, Outcome::Refused);
        engine
            .begin(payment(&format!("p{number}")).answered(refused))
            .await
            .unwrap();
    }
    tokio::time::sleep(MINUTE * 2).await;
    let instants = sent.instants();
    assert_eq!(instants.len(), 200);
    for (number, at) in instants.iter().enumerate() {
        let within = instants[number..]
            .iter()
            .take_while(|other| **other - *at < second);
        assert!(within.count() <= 11, "{number}");
    }
    let last = instants[199] - instants[0];
    assert!((19..=22).contains(&last.as_secs()), "{last:?}");
    assert_eq!(engine.status().await.unwrap().dead(), 0);
    running.stop().await.unwrap();
}

/// What is delivered again and again, of a transaction that has gone on, would keep the others out.
#[tokio::test(start_paused = true)]
async fn a_fire_that_is_not_wanted_pays_no_turn() {
    let clock = Paused::new();
    let rate = RateLimitPolicy::per(Duration::from_secs(1), 10);
    let rate = rate.burst(1).max_wait(MINUTE).build().unwrap();
    for shared in [true, false] {
        let backend = Memory::new(clock).backend();
        let backend = if shared {
            backend
        } else {
            without_limits(&backend)
        };
        let engine = Engine::builder(backend)
            .wall_clock(clock)
            .policies(policies());
        let engine = engine.rate(rate).build().unwrap();
        let running = engine.run(Sent::default().provider());
        engine.begin(payment("done")).await.unwrap();
        ended(&engine, "done").await;
        let refused = Answer::new(1, 0, Outcome::Refused);
        engine.begin(payment("p").answered(refused)).await.unwrap();
        let fires = engine.backend().queue(QueueName::Fires);
        fires.publish(vec![fire("done", 1); 100]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        fires.publish(vec![fire("p", 2)]).await.unwrap();
        let began = mamparo_core::clock::now();
        ended(&engine, "p").await;
        let took = mamparo_core::clock::now() - began;
        assert!(took < Duration::from_secs(1), "{took:?}");
        running.stop().await.unwrap();
    }
}

/// 200 at one a second: most wait for longer than the reconciler's patience with what is due.
#[tokio::test(start_paused = true)]
async fn what_waits_for_its_turn_is_not_taken_for_lost() {
    let clock = Paused::new();
    let rate = RateLimitPolicy::per(Duration::from_secs(1), 1).burst(1);
    let engine = on(&Memory::new(clock), clock).rate(rate.build().unwrap());
    let engine = engine.build().unwrap();
    let sent = Sent::default();
    let running = engine.run(sent.provider());
    let names: Vec<_> = (0..200).map(|number| format!("p{number}")).collect();
    for name in &names {
        let refused = Answer::new(1, 0, Outcome::Refused);
        engine.begin(payment(name).answered(refused)).await.unwrap();
    }
    for name in &names {
        ended(&engine, name).await;
        let history = engine.history(&id(name), 0, 10).await.unwrap();
        assert!(
            history.iter().all(|event| event.cause != Cause::Refired),
            "{name}"
        );
    }
    assert_eq!(sent.keys().len(), 200);
    running.stop().await.unwrap();
}

fn fire(name: &str, attempt: u32) -> Message {
    let (id, seq) = (id(name), 0);
    Message::Fire { id, attempt, seq }
}

fn without_limits(whole: &Backend) -> Backend {
    let queues = QueueName::ALL.map(|name| Arc::clone(whole.queue(name)));
    Backend::new(
        Arc::clone(whole.store()),
        Arc::clone(whole.scheduler()),
        queues,
    )
}

/// A stop does not wait for those whose turn has not come.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_turn_is_given_back_at_once() {
    let clock = Paused::new();
    let rate = RateLimitPolicy::per(MINUTE, 1).max_wait(MINUTE * 60);
    let engine = on(&Memory::new(clock), clock).rate(rate.build().unwrap());
    let engine = engine.build().unwrap();
    let running = engine.run(tower::service_fn(async |request: Request| {
        Ok::<_, BoxError>(Some(request.answer(Outcome::Success)))
    }));
    for name in ["a", "b", "c"] {
        engine.begin(payment(name)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = mamparo_core::clock::now();
    running.stop().await.unwrap();
    assert_eq!(mamparo_core::clock::now(), began);
    let (_, requests) = engine.status().await.unwrap().queues[2];
    assert_eq!((requests.ready, requests.taken), (2, 0));
}

#[derive(Debug)]
struct Breaker {
    open: Arc<AtomicBool>,
    asked: Arc<AtomicU32>,
    until: Utc,
}

impl Gatekeeper for Breaker {
    fn gate(&self, _: &Terms) -> Gate {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.open.load(Ordering::Relaxed) {
            Gate::Postpone {
                until: Some(self.until),
            }
        } else {
            Gate::Pass
        }
    }
}

/// Row: breaker open when the fire comes; and all that would come before it is closed is moved with the first.
#[tokio::test(start_paused = true)]
async fn an_open_breaker_moves_all_that_is_due_and_spends_no_attempt() {
    let clock = Paused::new();
    let heard = Arc::new(Heard::default());
    let (open, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let until = Utc::of(&clock).plus(MINUTE * 30);
    let breaker = Breaker {
        open: Arc::clone(&open),
        asked: Arc::clone(&asked),
        until,
    };
    let engine = on(&Memory::new(clock), clock)
        .listener(heard.clone())
        .gatekeeper(breaker);
    let engine: Engine = engine.build().unwrap();
    for number in 0..100 {
        let refused = Answer::new(1, 0, Outcome::Refused);
        let name = format!("p{number}");
        engine
            .begin(payment(&name).answered(refused))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let running = engine.run(tower::service_fn(async |request: Request| {
        Ok::<_, BoxError>(Some(request.answer(Outcome::Success)))
    }));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let moved = *heard.postponed.lock().unwrap();
    assert!(moved >= 50, "{moved}");
    assert!(asked.load(Ordering::Relaxed) <= 50);
    let waits = stored(&engine, "p99").await.progress;
    assert_eq!(
        (waits.state, waits.attempt_current, waits.postponements),
        (State::Scheduled, 1, 1)
    );
    assert!(waits.next_fire_at.is_some_and(|at| at >= until));
    assert_eq!(heard.kinds(), ["breaker_postponing"]);
    open.store(false, Ordering::Relaxed);
    for number in 0..100 {
        let record = ended(&engine, &format!("p{number}")).await;
        assert_eq!(
            (record.progress.end, record.progress.attempt_current),
            (Some(End::Answered), 2)
        );
    }
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_send_that_our_own_limits_keep_back_spends_nothing() {
    for reason in [Reason::RateLimited, Reason::BreakerOpen] {
        let (record, sent) = kept_back(20, move || {
            let refused = Rejection::refused(reason, Dependency::named("psp"));
            refused.with_retry_after(Duration::from_secs(1)).into()
        })
        .await;
        assert_eq!(
            (
                record.progress.postponements,
                record.progress.attempt_current
            ),
            (0, 1)
        );
        assert_eq!(sent.keys().len(), 20);
        let took = sent.instants()[19] - sent.instants()[0];
        assert!((19..=20).contains(&took.as_secs()), "{took:?}");
    }
}

/// A breaker that is forced open says no time; and what was sent before its resend was kept back, has failed.
#[tokio::test(start_paused = true)]
async fn a_send_that_is_kept_back_for_ever_or_after_a_failure_waits_as_one() {
    let (forced, _) = kept_back(2, || {
        Rejection::refused(Reason::BreakerOpen, Dependency::named("psp")).into()
    })
    .await;
    assert_eq!(forced.progress.postponements, 1);
    let (resend, _) = kept_back(2, || {
        let psp = Dependency::named("psp");
        let open = Rejection::refused(Reason::BreakerOpen, psp).with_retry_after(MINUTE);
        RetryError::new(psp, Ending::new(1, None, false), None, open.into()).into()
    })
    .await;
    assert_eq!(resend.progress.postponements, 1);
}

/// In flight for longer, its answer would be taken for lost.
#[tokio::test(start_paused = true)]
async fn a_send_that_an_open_breaker_keeps_back_for_minutes_waits_in_its_schedule() {
    let (long, sent) = kept_back(400, || {
        let open = Rejection::refused(Reason::BreakerOpen, Dependency::named("psp"));
        open.with_retry_after(Duration::from_secs(1)).into()
    })
    .await;
    let progress = &long.progress;
    assert!(progress.postponements > 0 && progress.attempt_current == 1);
    let gaps = sent
        .instants()
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect::<Vec<_>>();
    let first = gaps
        .iter()
        .position(|gap| *gap > Duration::from_secs(2))
        .unwrap();
    assert!((298..=301).contains(&first), "{first}");
}

/// What becomes of a payment whose sends fail like this but for the one of that number, and when they came.
async fn kept_back(
    number: usize,
    error: impl Fn() -> BoxError + Clone + Send + Sync + 'static,
) -> (Record, Sent) {
    let clock = Paused::new();
    let engine = on(&Memory::new(clock), clock).build().unwrap();
    let sent = Sent::default();
    let limited = {
        let sent = sent.clone();
        tower::service_fn(move |request: Request| {
            sent.note(&request);
            let answer = if sent.keys().len() < number {
                Err(error())
            } else {
                Ok(Some(request.answer(Outcome::Success)))
            };
            async { answer }
        })
    };
    let running = engine.run(limited);
    engine.begin(payment("p")).await.unwrap();
    let record = ended(&engine, "p").await;
    running.stop().await.unwrap();
    (record, sent)
}

/// 1 000 refusals within a minute come back spread over all of the jitter, 24 minutes here, and not as they came.
#[tokio::test(start_paused = true)]
async fn what_was_refused_together_comes_back_spread_by_the_jitter() {
    let clock = Paused::new();
    let wait = Wait::builder()
        .base(MINUTE * 120)
        .jitter(0.1)
        .build()
        .unwrap();
    let policies = Policies::new(Policy::builder().business(wait).build().unwrap());
    let engine = on(&Memory::new(clock), clock).policies(policies);
    let engine = engine.build().unwrap();
    let sent = Sent::default();
    let running = engine.run(sent.provider());
    let began = mamparo_core::clock::now();
    for number in 0..1_000 {
        let refused = Answer::new(1, 0, Outcome::Refused);
        let name = format!("p{number}");
        engine
            .begin(payment(&name).answered(refused))
            .await
            .unwrap();
        tokio::time::sleep(MINUTE / 1_000).await;
    }
    tokio::time::sleep(MINUTE * 150).await;
    let mut minutes = [0; 26];
    for at in sent.instants() {
        let after = (at - began).checked_sub(MINUTE * 108).unwrap();
        minutes[usize::try_from(after.as_secs() / 60).unwrap()] += 1;
    }
    assert_eq!(minutes.iter().sum::<u32>(), 1_000);
    // 40 each, in the mean of 25.
    let whole = &minutes[1..24];
    assert!(
        whole.iter().all(|count| (12..=80).contains(count)),
        "{minutes:?}"
    );
    running.stop().await.unwrap();
}
