//! The table of failures in docs/durable.md, row by row, with an outbox and without.

use std::time::Duration;

use tower_service::Service as _;

use super::mortal::Death;
use super::play::Play;
use super::support::{LONG, begin, now, queue, stored, take_one, transition, waiting, write};
use crate::backend::{Backend, Message, QueueName, Written};
use crate::handler::{Cycle, FireHandler, Gatekeeper, Reconciler, Runner};
use crate::machine::{
    AlertKind, Answer, Cause, End, Gate, Input, Note, Outcome, Patience, Progress, Record,
    Schedule, State, Terms, TransactionId,
};

/// With whole steps at once if the backend can, and one thing after the other.
pub(super) fn both(backend: &Backend) -> Vec<(&'static str, Backend)> {
    let mut both = vec![("apart", backend.clone().without_outbox())];
    if backend.outbox().is_some() {
        both.push(("at once", backend.clone()));
    }
    both
}

/// Rows: A or B dies, at any point.
///
/// A before SCHEDULING; after it, before the schedule; after the schedule, before SCHEDULED. B after SENDING, before
/// publishing; after publishing, before `IN_FLIGHT`.
pub async fn whoever_dies_at_any_point_the_redelivery_ends_it_well(backend: Backend) {
    for (how, backend) in both(&backend) {
        for after in [false, true] {
            let mut at = 0;
            while dies(&backend, &format!("{how} {after} {at}"), at, after).await {
                at += 1;
            }
            assert!(at > 3, "it died at only {at} points");
        }
    }
}

/// Whether whoever handles it lived long enough to die.
async fn dies(backend: &Backend, name: &str, at: i64, after: bool) -> bool {
    let play = Play::new(backend, &[Outcome::Refused, Outcome::Success]);
    let id = play.begin(name).await;
    let death = Death::at(at, after);
    let end = play.mortal(&death).until_end(&id).await;
    assert_eq!(
        (end.progress.state, end.progress.attempt_current),
        (State::Succeeded, 2),
        "{name}"
    );
    play.drain().await;
    play.audit(&id).await;
    let seen = play.dependency.seen();
    let keys: Vec<&str> = seen.keys().map(String::as_str).collect();
    assert_eq!(keys, [format!("{name}#1"), format!("{name}#2")]);
    assert!(seen.values().all(|times| *times <= 2), "{seen:?}");
    assert_eq!(play.alerts.kinds(), []);
    death.came()
}

/// Row: the fire comes while A is in SCHEDULING. B accepts; A's later failure to confirm is success.
pub async fn a_fire_that_comes_before_the_confirmation_is_accepted(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Refused, Outcome::Success]);
        let record = Record::in_flight(play.terms(how));
        begin(&backend, &record).await;
        let scheduling = waiting(&record, State::Scheduling, now());
        let refused = transition(&record.progress, &scheduling, Cause::Refused);
        let id = &record.terms.id;
        assert_eq!(write(&backend, id, refused).await, Written::Applied);
        create(&backend, id, &scheduling).await;
        play.until(id, |state| state == State::InFlight).await;
        let confirmed = play
            .runner
            .run(id, Input::Confirmed { attempt: 2, seq: 0 })
            .await
            .unwrap();
        assert_eq!(confirmed.note, Note::Already);
        assert_eq!(play.until_end(id).await.progress.state, State::Succeeded);
    }
}

pub(super) async fn create(backend: &Backend, id: &TransactionId, waiting: &Progress) {
    let schedule = Schedule {
        attempt: 2,
        seq: waiting.schedule_seq,
        fire_at: waiting.next_fire_at.unwrap(),
    };
    let created = backend
        .scheduler()
        .create(vec![(id.clone(), schedule)])
        .await;
    assert!(created.iter().all(Result::is_ok));
}

/// A transaction that waits for its second attempt, which is due.
pub(super) async fn due(backend: &Backend, name: &str) -> Record {
    let play = Play::new(backend, &[]);
    let record = Record::in_flight(Terms {
        dependency: Some("psp".into()),
        ..play.terms(name)
    });
    begin(backend, &record).await;
    let to = waiting(&record, State::Scheduled, now());
    let moved = transition(&record.progress, &to, Cause::Refused);
    assert_eq!(
        write(backend, &record.terms.id, moved).await,
        Written::Applied
    );
    Record {
        progress: to,
        ..record
    }
}

/// Row: the scheduler can't deliver. The message is kept among the dead letters; sent back, all goes on.
pub async fn a_fire_among_the_dead_letters_can_be_sent_back(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Refused, Outcome::Success]);
        let record = due(&backend, how).await;
        create(&backend, &record.terms.id, &record.progress).await;
        let fires = &**queue(&backend, QueueName::Fires);
        let delivery = take_one(fires, LONG).await;
        fires
            .bury(delivery.receipt, "not delivered".into())
            .await
            .unwrap();
        play.drain().await;
        assert_eq!(stored(&backend, &record.terms.id).await, record);
        let dead = fires.dead(None, 10).await.unwrap();
        assert_eq!(
            fires
                .requeue(dead.iter().map(|letter| letter.number).collect())
                .await
                .unwrap(),
            1
        );
        assert_eq!(
            play.until_end(&record.terms.id).await.progress.state,
            State::Succeeded
        );
    }
}

/// Row: the fire comes twice. It is sent once, or resumed under the same key.
pub async fn a_fire_that_comes_twice_sends_one_attempt(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Refused, Outcome::Success]);
        let id = due(&backend, how).await.terms.id.clone();
        for _ in 0..3 {
            play.publish(Message::Fire {
                id: id.clone(),
                attempt: 2,
                seq: 0,
            })
            .await;
        }
        assert_eq!(play.until_end(&id).await.progress.state, State::Succeeded);
        play.drain().await;
        assert_eq!(
            play.dependency.seen().into_keys().collect::<Vec<_>>(),
            [format!("{how}#2")]
        );
        play.audit(&id).await;
    }
}

/// Row: an answer to an older attempt is dropped by its number, whatever it says.
pub async fn an_answer_to_an_older_attempt_is_dropped(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Refused, Outcome::Success]);
        let id = due(&backend, how).await.terms.id.clone();
        play.publish(Message::Fire {
            id: id.clone(),
            attempt: 2,
            seq: 0,
        })
        .await;
        let fire = take_one(&**queue(&backend, QueueName::Fires), LONG).await;
        play.call(fire).await.unwrap();
        let before = stored(&backend, &id).await;
        assert_eq!(
            (before.progress.state, before.progress.attempt_current),
            (State::InFlight, 2)
        );
        for outcome in Outcome::ALL {
            let late = Input::Answer(Answer::new(1, 0, outcome));
            assert_eq!(play.runner.run(&id, late).await.unwrap().note, Note::Late);
        }
        assert_eq!(stored(&backend, &id).await, before);
        assert_eq!(play.until_end(&id).await.progress.state, State::Succeeded);
        play.drain().await;
    }
}

/// Row: attempts exhausted. FAILED, and the business is told; a technical failure spends none.
pub async fn the_last_refusal_fails_it_and_tells_the_business(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Refused]);
        let id = play.begin(how).await;
        let end = play.until_end(&id).await;
        assert_eq!(
            (end.progress.end, end.progress.attempt_current),
            (Some(End::Exhausted), 2)
        );
        play.drain().await;
        assert_eq!(play.alerts.kinds(), [AlertKind::Failed(End::Exhausted)]);
        assert_eq!(play.dependency.seen().len(), 2);
        play.audit(&id).await;
    }
}

/// A technical failure sends the same attempt again, under the same key, until that is enough.
pub async fn technical_failures_spend_postponements_and_no_attempt(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Technical]);
        let id = play.begin(how).await;
        let end = play.until_end(&id).await.progress;
        assert_eq!(
            (end.end, end.attempt_current, end.postponements),
            (Some(End::OutcomeUnknown), 1, 3)
        );
        play.drain().await;
        assert_eq!(
            play.dependency.seen().into_iter().collect::<Vec<_>>(),
            [(format!("{how}#1"), 4)]
        );
        assert_eq!(
            play.alerts.kinds(),
            [AlertKind::Failed(End::OutcomeUnknown)]
        );
    }
}

/// Row: resolved otherwise while a fire is on its way. It is dropped.
pub async fn a_fire_that_finds_it_resolved_is_dropped(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Refused]);
        let id = due(&backend, how).await.terms.id.clone();
        play.publish(Message::Fire {
            id: id.clone(),
            attempt: 2,
            seq: 0,
        })
        .await;
        let resolve = Input::Resolve {
            reason: Some("by hand".into()),
        };
        assert_eq!(
            play.runner.run(&id, resolve.clone()).await.unwrap().note,
            Note::Applied
        );
        assert_eq!(
            play.runner.run(&id, resolve).await.unwrap().note,
            Note::Already
        );
        play.drain().await;
        let end = stored(&backend, &id).await.progress;
        assert_eq!(
            (
                end.end,
                end.reason.as_ref().map(crate::machine::Label::as_str)
            ),
            (Some(End::Resolved), Some("by hand"))
        );
        assert!(play.dependency.seen().is_empty());
    }
}

#[derive(Debug)]
struct Open;

impl Gatekeeper for Open {
    fn gate(&self, _: &Terms) -> Gate {
        Gate::Postpone { until: None }
    }
}

/// Row: the breaker is open when the fire comes. Postponed, and no attempt is spent.
pub async fn an_open_breaker_postpones_and_spends_no_attempt(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Refused, Outcome::Success]);
        let id = due(&backend, how).await.terms.id.clone();
        let mut handler = FireHandler::new(play.runner.clone(), Open);
        for seq in 0..2 {
            play.publish(Message::Fire {
                id: id.clone(),
                attempt: 2,
                seq,
            })
            .await;
            let fires = queue(&backend, QueueName::Fires);
            let fire = take_one(&**fires, LONG).await;
            let receipt = fire.receipt.clone();
            assert_eq!(handler.call(fire).await.unwrap().note, Note::Applied);
            fires.acknowledge(vec![receipt]).await.unwrap();
            let after = stored(&backend, &id).await.progress;
            assert_eq!(
                (after.state, after.attempt_current, after.attempt_next),
                (State::Scheduled, 1, Some(2))
            );
            assert_eq!(
                (after.schedule_seq, after.postponements),
                (seq + 1, seq + 1)
            );
            // The schedule that was made stands for itself; here its fire is published by hand.
            backend
                .scheduler()
                .delete(id.clone(), 2, seq + 1)
                .await
                .unwrap();
            drop(fires.take(10, LONG).await.unwrap());
        }
        assert_eq!(
            play.alerts.kinds(),
            [AlertKind::BreakerPostponing],
            "told once"
        );
        play.publish(Message::Fire {
            id: id.clone(),
            attempt: 2,
            seq: 2,
        })
        .await;
        assert_eq!(play.until_end(&id).await.progress.state, State::Succeeded);
        play.drain().await;
    }
}

/// Row: the answer is lost. The reconciler sends the same key again; in the end the outcome is unknown.
pub async fn a_lost_answer_is_asked_for_again_and_given_up_at_last(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Success]);
        let record = Record::in_flight(play.terms(how));
        begin(&backend, &record).await;
        assert_eq!(cycle(&play.runner).await.mended, 1);
        assert_eq!(
            play.alerts.kinds(),
            [AlertKind::AnswerLost, AlertKind::Stuck]
        );
        assert_eq!(
            play.until_end(&record.terms.id).await.progress.state,
            State::Succeeded
        );
        assert_eq!(
            play.dependency.seen().into_keys().collect::<Vec<_>>(),
            [format!("{how}#1")]
        );

        let terms = Terms {
            give_up_at: now(),
            ..play.terms(&format!("{how}, given up"))
        };
        let given_up = Record::in_flight(terms);
        begin(&backend, &given_up).await;
        assert_eq!(cycle(&play.runner).await.mended, 1);
        let ended = play.until_end(&given_up.terms.id).await;
        assert_eq!(ended.progress.end, Some(End::OutcomeUnknown));
        assert!(
            play.alerts
                .kinds()
                .contains(&AlertKind::Failed(End::OutcomeUnknown))
        );
    }
}

pub(super) async fn cycle(runner: &Runner) -> Cycle {
    reconciler(runner).cycle(Cycle::default()).await.unwrap()
}

/// One without any patience.
pub(super) fn reconciler(runner: &Runner) -> Reconciler {
    let none = Duration::ZERO;
    let patience = Patience {
        scheduling: none,
        scheduled: none,
        sending: none,
        in_flight: none,
    };
    let reconciler = Reconciler::builder(runner.clone()).patience(patience);
    reconciler.build().unwrap()
}

/// Row: A's or B's conditional write misses. The row is read again, and decided again.
pub async fn a_handler_that_read_what_was_true_before_decides_again(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[]);
        let before = due(&backend, how).await;
        let sending = Progress {
            state: State::Sending,
            attempt_current: 2,
            next_fire_at: None,
            ..before.progress.clone()
        };
        let in_flight = Progress {
            state: State::InFlight,
            attempt_next: None,
            ..sending.clone()
        };
        let id = &before.terms.id;
        for (from, to) in [(&before.progress, &sending), (&sending, &in_flight)] {
            assert_eq!(
                write(&backend, id, transition(from, to, Cause::Moved)).await,
                Written::Applied
            );
        }
        let stale = Record {
            progress: sending,
            ..before.clone()
        };
        let answered = play.mortal(&Death::reads(stale)).runner;
        let success = Input::Answer(Answer::new(2, 0, Outcome::Success));
        assert_eq!(answered.run(id, success).await.unwrap().note, Note::Applied);
        assert_eq!(stored(&backend, id).await.progress.state, State::Succeeded);
        let fired = play.mortal(&Death::reads(before.clone())).runner;
        let fire = Input::Fire(crate::machine::Fire::new(2, 0));
        assert_eq!(fired.run(id, fire).await.unwrap().note, Note::Finished);
        assert!(
            queue(&backend, QueueName::Requests)
                .take(1, LONG)
                .await
                .unwrap()
                .is_empty()
        );
    }
}
