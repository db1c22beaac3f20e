//! What else must end well: what is stuck, races, redeliveries, messages that nobody can handle.

use std::sync::Arc;
use std::time::Duration;

use super::failures::{both, create, cycle, due, reconciler};
use super::mortal::Death;
use super::play::{Play, policy};
use super::support::{begin, now, pass, queue, stored, transition, waiting, write};
use crate::backend::{Backend, QueueName, Written};
use crate::handler::Cycle;
use crate::machine::{AlertKind, Answer, Cause, End, Outcome, Progress, Record, State, Terms};

/// The reconciler revives every intermediate state, with nothing left of what had been on its way.
pub async fn the_reconciler_revives_each_intermediate_state(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Success]);
        for state in [
            State::InFlight,
            State::Scheduling,
            State::Scheduled,
            State::Sending,
        ] {
            let record = Record::in_flight(play.terms(&format!("{how} {state}")));
            begin(&backend, &record).await;
            let waits = waiting(&record, state, now());
            let to = match state {
                State::InFlight => record.progress.clone(),
                State::Sending => Progress {
                    attempt_current: 2,
                    next_fire_at: None,
                    ..waits
                },
                _ => waits,
            };
            let moved = transition(&record.progress, &to, Cause::Moved);
            assert_eq!(
                write(&backend, &record.terms.id, moved).await,
                Written::Applied
            );
            assert_eq!(cycle(&play.runner).await.mended, 1, "{state}");
            assert_eq!(
                play.until_end(&record.terms.id).await.progress.state,
                State::Succeeded,
                "{state}"
            );
            play.audit(&record.terms.id).await;
            play.drain().await;
            assert_eq!(cycle(&play.runner).await.found, 0, "{state}");
        }
    }
}

/// Row: an answer is lost for good. Whoever gives up on it may die at any point: a person hears of it all the same.
pub async fn an_answer_that_is_given_up_is_told_whoever_dies(backend: Backend) {
    for (how, backend) in both(&backend) {
        for after in [false, true] {
            let mut at = 0;
            while gives_up_and_dies(&backend, &format!("{how} {after} {at}"), at, after).await {
                at += 1;
            }
            assert!(at > 2, "it died at only {at} points");
        }
    }
}

/// Whether whoever gives up, and handles what comes of it, lived long enough to die.
async fn gives_up_and_dies(backend: &Backend, name: &str, at: i64, after: bool) -> bool {
    let play = Play::new(backend, &[]);
    let terms = Terms {
        give_up_at: now(),
        ..play.terms(name)
    };
    let record = Record::in_flight(terms);
    begin(backend, &record).await;
    let death = Death::at(at, after);
    let dying = play.mortal(&death);
    drop(reconciler(&dying.runner).cycle(Cycle::default()).await);
    dying.round().await;
    // Whoever comes next.
    pass(Duration::from_millis(2)).await;
    cycle(&play.runner).await;
    let ended = play.until_end(&record.terms.id).await;
    play.drain().await;
    assert_eq!(ended.progress.end, Some(End::OutcomeUnknown), "{name}");
    let told = AlertKind::Failed(End::OutcomeUnknown);
    assert!(play.alerts.kinds().contains(&told), "{name}: nobody heard");
    play.audit(&record.terms.id).await;
    death.came()
}

/// What a cycle says is what it did: also of those for which the backend failed, which the next one takes up.
pub async fn a_cycle_counts_what_it_found_mended_and_failed(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Success]);
        for n in 0..5 {
            let record = Record::in_flight(play.terms(&format!("{how} {n}")));
            begin(&backend, &record).await;
        }
        pass(Duration::from_millis(2)).await;
        // One dies before it writes.
        let dying = play.mortal(&Death::at(0, false));
        let first = reconciler(&dying.runner).cycle(Cycle::default()).await;
        let first = first.unwrap();
        let counts = (first.found, first.mended, first.failed, first.dead);
        assert_eq!(counts, (5, 4, 1, 0), "{how}");
        let stuck = play.alerts.counts(AlertKind::Stuck);
        assert_eq!(stuck, [4], "as many as were mended");
        let second = cycle(&play.runner).await;
        assert_eq!((second.mended, second.failed), (second.found, 0), "{how}");
        assert!(second.found > 0, "the one that failed");
        play.drain().await;
        let third = cycle(&play.runner).await;
        assert_eq!((third.found, third.mended, third.failed), (0, 0, 0));
    }
}

/// The same, with many handlers at work on the same transactions at once.
pub async fn of_handlers_that_race_for_one_transaction_none_loses_it(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Arc::new(Play::new(&backend, &[Outcome::Refused, Outcome::Success]));
        let mut ids = Vec::new();
        for n in 0..8 {
            ids.push(play.begin(&format!("{how} {n}")).await);
        }
        for id in &ids {
            for _ in 0..4 {
                play.answer(id, Answer::new(1, 0, Outcome::Refused)).await;
            }
        }
        let racers: Vec<_> = (0..4)
            .map(|_| {
                let (play, ids) = (play.clone(), ids.clone());
                tokio::spawn(async move {
                    for id in &ids {
                        play.until_end(id).await;
                    }
                })
            })
            .collect();
        for racer in racers {
            racer.await.unwrap();
        }
        play.drain().await;
        for id in &ids {
            assert_eq!(stored(&backend, id).await.progress.state, State::Succeeded);
            play.audit(id).await;
        }
        assert_eq!(play.dependency.seen().len(), 16);
        assert_eq!(play.alerts.kinds(), []);
    }
}

/// Forced redelivery of every message at every step changes nothing.
pub async fn every_message_handled_twice_is_as_if_once(backend: Backend) {
    for (how, backend) in both(&backend) {
        for (name, script, end) in [
            ("done", [Outcome::Refused, Outcome::Success], End::Answered),
            (
                "exhausted",
                [Outcome::Refused, Outcome::Refused],
                End::Exhausted,
            ),
            (
                "declined",
                [Outcome::Refused, Outcome::Declined],
                End::Declined,
            ),
        ] {
            let play = Play {
                twice: true,
                ..Play::new(&backend, &script)
            };
            let id = play.begin(&format!("{how} {name}")).await;
            let record = play.until_end(&id).await;
            play.drain().await;
            assert_eq!(
                (record.progress.end, record.progress.postponements),
                (Some(end), 0)
            );
            assert_eq!(stored(&backend, &id).await, record);
            assert_eq!(play.dependency.seen().len(), 2);
            play.audit(&id).await;
        }
    }
}

/// A message about a transaction that is not stored is buried, and told.
pub async fn a_message_about_an_unknown_transaction_is_buried_and_told(backend: Backend) {
    for (_, backend) in both(&backend) {
        let play = Play::new(&backend, &[]);
        play.answer(
            &super::support::id("unknown"),
            Answer::new(1, 0, Outcome::Success),
        )
        .await;
        play.drain().await;
        assert_eq!(play.alerts.kinds(), [AlertKind::UnknownTransaction]);
        let answers = queue(&backend, QueueName::Answers);
        let dead = answers.dead(None, 10).await.unwrap();
        assert_eq!(dead.len(), 1);
        answers
            .discard(vec![dead[0].number], "unknown".into())
            .await
            .unwrap();
    }
}

/// A policy that changes while a transaction waits changes neither its instant nor its ends.
pub async fn a_changed_policy_touches_nothing_that_waits(backend: Backend) {
    for (how, backend) in both(&backend) {
        let record = due(&backend, how).await;
        create(&backend, &record.terms.id, &record.progress).await;
        let stricter = crate::policy::Policy::builder()
            .max_attempts(1)
            .build()
            .unwrap();
        let play = Play::by(&backend, &[Outcome::Refused, Outcome::Success], stricter);
        assert_eq!(record.terms.max_attempts, policy().max_attempts());
        assert_eq!(
            play.until_end(&record.terms.id).await.progress.state,
            State::Succeeded
        );
        play.drain().await;
    }
}
