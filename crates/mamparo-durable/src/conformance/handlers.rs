//! What a [`Runner`](crate::handler::Runner) does over a backend, with an outbox and without.

use super::failures::both;
use super::mortal::Death;
use super::play::Play;
use super::support::{load, stored};
use crate::backend::{Backend, Begun, NewTransaction};
use crate::machine::{Answer, End, Input, Outcome, Record, State};

/// A transaction whose original the engine sends is sent once it is begun, and again if whoever began it died.
pub async fn an_original_that_the_engine_sends_is_sent_whoever_dies(backend: Backend) {
    for (how, backend) in both(&backend) {
        for after in [false, true] {
            for at in 0..6 {
                let play = Play::new(&backend, &[Outcome::Success]);
                let record = Record::sending(play.terms(&format!("{how} {after} {at}")));
                let new = NewTransaction::new(record.clone(), &b"the request"[..]).unwrap();
                let death = Death::at(at, after);
                let begun = play.mortal(&death).runner.begin(new.clone(), None).await;
                assert_eq!(begun.is_err(), death.came());
                // Whoever began it and does not know whether it did begins it again.
                if begun.is_err() {
                    play.runner.begin(new, None).await.unwrap();
                }
                let end = play.until_end(&record.terms.id).await;
                assert_eq!(
                    (end.progress.state, end.progress.attempt_current),
                    (State::Succeeded, 1)
                );
                play.drain().await;
                assert_eq!(play.dependency.seen().len(), 1);
                play.audit(&record.terms.id).await;
            }
        }
    }
}

/// A transaction may begin with the refusal that it waits for; begun twice, it waits once.
pub async fn a_transaction_may_begin_with_its_refusal(backend: Backend) {
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Refused, Outcome::Success]);
        let record = Record::in_flight(play.terms(how));
        let new = NewTransaction::new(record.clone(), &b"the request"[..]).unwrap();
        let refused = Input::Answer(Answer::new(1, 0, Outcome::Refused).with_reason("CANCELLED"));
        assert_eq!(
            play.runner
                .begin(new.clone(), Some(refused.clone()))
                .await
                .unwrap(),
            Begun::New
        );
        let waits = stored(&backend, &record.terms.id).await;
        assert_eq!(
            (waits.progress.state, waits.progress.attempt_next),
            (State::Scheduled, Some(2))
        );
        assert_eq!(
            play.runner.begin(new, Some(refused)).await.unwrap(),
            Begun::Exists(waits.clone())
        );
        assert_eq!(stored(&backend, &record.terms.id).await, waits);
        assert_eq!(
            play.until_end(&record.terms.id).await.progress.end,
            Some(End::Answered)
        );
        play.drain().await;
    }
}

/// Operators move, fire, cancel and resolve; what they may not, they are told.
pub async fn operators_move_fire_cancel_and_resolve(backend: Backend) {
    use crate::machine::Note;
    for (how, backend) in both(&backend) {
        let play = Play::new(&backend, &[Outcome::Refused, Outcome::Success]);
        let wait = async |name: &str| {
            let record = Record::in_flight(play.terms(&format!("{how} {name}")));
            let new = NewTransaction::new(record.clone(), &b"the request"[..]).unwrap();
            let refused = Input::Answer(Answer::new(1, 0, Outcome::Refused));
            play.runner.begin(new, Some(refused)).await.unwrap();
            record.terms.id.clone()
        };
        let run = async |id: &_, input| play.runner.run(id, input).await.unwrap().note;
        let moved = wait("moved").await;
        let far = crate::machine::Utc::MAX;
        assert_eq!(
            run(
                &moved,
                Input::Move {
                    to: far,
                    reason: None
                }
            )
            .await,
            Note::Applied
        );
        let cancelled = wait("cancelled").await;
        assert_eq!(
            run(&cancelled, Input::Cancel { reason: None }).await,
            Note::Applied
        );
        assert_eq!(
            run(
                &cancelled,
                Input::Move {
                    to: far,
                    reason: None
                }
            )
            .await,
            Note::Finished
        );
        play.drain().await;
        assert_eq!(
            stored(&backend, &cancelled).await.progress.end,
            Some(End::Cancelled)
        );
        assert_eq!(
            stored(&backend, &moved).await.progress.next_fire_at,
            Some(far)
        );
        assert_eq!(
            run(&moved, Input::FireNow { reason: None }).await,
            Note::Applied
        );
        assert_eq!(
            play.until_end(&moved).await.progress.end,
            Some(End::Answered)
        );
        assert_eq!(stored(&backend, &moved).await.progress.postponements, 0);
        assert_eq!(
            run(
                &super::support::id("unknown"),
                Input::Cancel { reason: None }
            )
            .await,
            Note::Unknown
        );
        assert_eq!(load(&backend, &super::support::id("unknown")).await, None);
    }
}
