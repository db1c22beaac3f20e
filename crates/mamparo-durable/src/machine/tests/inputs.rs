//! One input at a time.

use std::time::Duration;

use super::super::{
    AlertKind, Answer, Cause, Effect, End, Fire, Gate, Input, Note, Outcome, Patience, Progress,
    Schedule, State, Utc,
};
use super::support::{HOUR, at, judge, judge_at, stands};

const IN_FLIGHT: State = State::InFlight;
const SCHEDULING: State = State::Scheduling;
const SCHEDULED: State = State::Scheduled;
const SENDING: State = State::Sending;

fn answer(attempt: u32, seq: u32, outcome: Outcome) -> Input {
    Input::Answer(Answer::new(attempt, seq, outcome))
}

fn fire(attempt: u32, seq: u32) -> Input {
    Input::Fire(Fire::new(attempt, seq))
}

fn failed(end: End) -> Progress {
    Progress {
        end: Some(end),
        ..stands(end.state(), 2, None, 0)
    }
}

#[test]
fn a_refusal_stores_the_next_attempt_and_its_instant_then_makes_the_schedule_then_confirms() {
    let decision = judge(
        &stands(IN_FLIGHT, 1, None, 0),
        &Input::Answer(Answer::new(1, 0, Outcome::Refused).with_reason("CANCELLED")),
    );
    let write = decision.write.expect("a write");
    assert_eq!(
        (
            write.to.state,
            write.to.attempt_current,
            write.to.attempt_next
        ),
        (SCHEDULING, 1, Some(2))
    );
    assert_eq!(
        (write.to.next_fire_at, write.to.schedule_seq),
        (Some(at(3)), 0)
    );
    assert_eq!(
        (write.event.cause, write.event.attempt, write.event.fire_at),
        (Cause::Refused, 2, Some(at(3)))
    );
    assert_eq!(
        write.event.reason.as_ref().map(super::super::Label::as_str),
        Some("CANCELLED")
    );
    assert_eq!(
        write
            .event
            .schedule_name(&super::support::id("t"))
            .as_deref(),
        Some("retry-t-2")
    );
    assert_eq!(
        decision.effects,
        [Effect::Schedule(Schedule {
            attempt: 2,
            seq: 0,
            fire_at: at(3)
        })]
    );
    assert_eq!(decision.then, Some(Input::Confirmed { attempt: 2, seq: 0 }));
}

#[test]
fn the_refusal_of_the_last_attempt_fails_it_and_tells_the_business() {
    let decision = judge(
        &stands(IN_FLIGHT, 2, None, 0),
        &answer(2, 0, Outcome::Refused),
    );
    assert_eq!(
        decision.write.map(|write| (write.to.state, write.to.end)),
        Some((State::Failed, Some(End::Exhausted)))
    );
    assert_eq!(
        decision.effects,
        [Effect::Alert(AlertKind::Failed(End::Exhausted))]
    );
}

#[test]
fn what_is_declined_is_not_tried_again() {
    let decision = judge(
        &stands(IN_FLIGHT, 1, None, 0),
        &answer(1, 0, Outcome::Declined),
    );
    assert_eq!(
        decision.write.and_then(|write| write.to.end),
        Some(End::Declined)
    );
    assert_eq!(
        decision.effects,
        [Effect::Alert(AlertKind::Failed(End::Declined))]
    );
}

#[test]
fn whoever_died_before_telling_has_the_redelivered_answer_tell_again() {
    let again = judge(&failed(End::Exhausted), &answer(2, 0, Outcome::Refused));
    assert_eq!((again.write, again.note), (None, Note::Finished));
    assert_eq!(
        again.effects,
        [Effect::Alert(AlertKind::Failed(End::Exhausted))]
    );
    assert_eq!(
        judge(&failed(End::Cancelled), &answer(2, 0, Outcome::Refused)).effects,
        []
    );
    let fire = judge(&failed(End::PostponedTooLong), &fire(2, 0));
    assert_eq!(
        fire.effects,
        [Effect::Alert(AlertKind::Failed(End::PostponedTooLong))]
    );
}

#[test]
fn a_success_that_comes_after_the_end_changes_nothing_and_is_told() {
    let ignored = [Effect::Alert(AlertKind::SuccessIgnored)];
    let late = judge(&failed(End::Exhausted), &answer(2, 0, Outcome::Success));
    assert_eq!(
        (late.write, late.effects.as_slice()),
        (None, ignored.as_slice())
    );
    let waiting = judge(
        &stands(SCHEDULED, 1, Some(2), 0),
        &answer(1, 0, Outcome::Success),
    );
    assert_eq!(
        (waiting.write, waiting.effects.as_slice()),
        (None, ignored.as_slice())
    );
    assert_eq!(
        judge(&failed(End::Answered), &answer(2, 0, Outcome::Success)).effects,
        []
    );
}

#[test]
fn a_technical_failure_sends_the_same_attempt_again_and_spends_none() {
    let decision = judge(
        &stands(SENDING, 2, Some(2), 1),
        &answer(2, 1, Outcome::Technical),
    );
    let to = decision.write.expect("a write").to;
    assert_eq!(
        (to.state, to.attempt_current, to.attempt_next),
        (SCHEDULING, 2, Some(2))
    );
    assert_eq!(
        (to.schedule_seq, to.postponements, to.next_fire_at),
        (2, 1, Some(at(3)))
    );
}

#[test]
fn a_technical_failure_past_either_end_leaves_the_outcome_unknown() {
    let spent = Progress {
        postponements: 2,
        ..stands(IN_FLIGHT, 1, None, 2)
    };
    let input = answer(1, 2, Outcome::Technical);
    let too_often = judge(&spent, &input);
    let too_late = judge_at(at(7 * 24), &stands(IN_FLIGHT, 1, None, 2), &input);
    for decision in [too_often, too_late] {
        assert_eq!(
            decision.effects,
            [Effect::Alert(AlertKind::Failed(End::OutcomeUnknown))]
        );
        assert_eq!(
            decision.write.and_then(|write| write.to.end),
            Some(End::OutcomeUnknown)
        );
    }
}

#[test]
fn an_open_breaker_postpones_before_the_claim_and_spends_no_attempt() {
    let postponed = Input::Fire(Fire::new(2, 0).with_gate(Gate::Postpone { until: Some(at(9)) }));
    for state in [SCHEDULING, SCHEDULED] {
        let decision = judge(&stands(state, 1, Some(2), 0), &postponed);
        let to = decision.write.expect("a write").to;
        assert_eq!(
            (
                to.state,
                to.attempt_current,
                to.attempt_next,
                to.schedule_seq
            ),
            (SCHEDULING, 1, Some(2), 1)
        );
        assert_eq!((to.postponements, to.next_fire_at), (1, Some(at(9))));
    }
    let sending = judge(&stands(SENDING, 2, Some(2), 0), &postponed);
    assert_eq!((sending.write, sending.note), (None, Note::Resumed));
}

#[test]
fn what_is_postponed_too_often_fails_and_says_whether_the_outcome_is_known() {
    let postponed = Input::Postpone { until: None };
    for (next, end) in [(2, End::PostponedTooLong), (1, End::OutcomeUnknown)] {
        let spent = Progress {
            postponements: 2,
            ..stands(SCHEDULED, 1, Some(next), 0)
        };
        let decision = judge(&spent, &postponed);
        assert_eq!(decision.write.and_then(|write| write.to.end), Some(end));
    }
}

#[test]
fn an_operators_move_is_made_before_the_old_schedule_is_deleted_and_is_no_postponement() {
    let decision = judge(
        &stands(SCHEDULED, 1, Some(2), 0),
        &Input::Move {
            to: at(5),
            reason: None,
        },
    );
    let to = decision.write.expect("a write").to;
    assert_eq!(
        (to.schedule_seq, to.postponements, to.next_fire_at),
        (1, 0, Some(at(5)))
    );
    let made = Effect::Schedule(Schedule {
        attempt: 2,
        seq: 1,
        fire_at: at(5),
    });
    assert_eq!(
        decision.effects,
        [made, Effect::Unschedule { attempt: 2, seq: 0 }]
    );
    let now = judge(
        &stands(SCHEDULED, 1, Some(2), 0),
        &Input::FireNow { reason: None },
    );
    assert_eq!(
        now.write.and_then(|write| write.to.next_fire_at),
        Some(at(1))
    );
}

#[test]
fn the_reconciler_waits_until_its_threshold() {
    let patience = Patience {
        in_flight: 2 * HOUR,
        ..Patience::default()
    };
    let input = Input::Reconcile(patience);
    let minute = Duration::from_secs(60);
    for (progress, too_soon) in [
        (stands(IN_FLIGHT, 1, None, 0), at(2)),
        (stands(SCHEDULING, 1, Some(2), 0), at(0).plus(minute)),
        (stands(SCHEDULED, 1, Some(2), 0), at(2).plus(minute)),
        (stands(SENDING, 2, Some(2), 0), at(0).plus(minute)),
    ] {
        let just_before = Utc::from_millis(too_soon.millis() - 1).unwrap();
        assert_eq!(
            judge_at(just_before, &progress, &input).note,
            Note::NotStuck,
            "{:?}",
            progress.state
        );
        assert_ne!(
            judge_at(too_soon, &progress, &input).note,
            Note::NotStuck,
            "{:?}",
            progress.state
        );
    }
    let gone_back = Utc::from_millis(at(0).millis() - 3_600_000).unwrap();
    assert_eq!(
        judge_at(gone_back, &stands(SENDING, 2, Some(2), 0), &input).note,
        Note::NotStuck
    );
}

#[test]
fn the_reconciler_gives_up_by_a_message_that_tells_again_when_it_comes_again() {
    let late = at(7 * 24);
    let waits = stands(IN_FLIGHT, 2, None, 1);
    let looked = judge_at(late, &waits, &Input::Reconcile(Patience::default()));
    let seq = Fire::GIVES_UP;
    assert_eq!(looked.effects, [Effect::Refire { attempt: 2, seq }]);
    assert_eq!(looked.write.unwrap().to.state, IN_FLIGHT);

    let fire = Input::Fire(Fire::new(2, seq).with_gate(Gate::Postpone { until: None }));
    let told = [Effect::Alert(AlertKind::Failed(End::OutcomeUnknown))];
    let ended = judge_at(late, &waits, &fire);
    assert_eq!(ended.effects, told);
    let to = ended.write.unwrap().to;
    assert_eq!(to.end, Some(End::OutcomeUnknown));
    let again = judge_at(late, &to, &fire);
    assert_eq!((again.write, again.effects), (None, told.to_vec()));
    // Neither before its time, nor of another attempt, nor where an answer came meanwhile.
    for (now, stands) in [
        (at(24), waits),
        (late, stands(IN_FLIGHT, 1, None, 1)),
        (late, stands(SCHEDULED, 1, Some(2), 0)),
        (late, stands(SENDING, 2, Some(2), 0)),
    ] {
        let nothing = judge_at(now, &stands, &fire);
        assert_eq!((nothing.write, nothing.effects), (None, Vec::new()));
    }
}

#[test]
fn what_contradicts_itself_is_left_alone_and_told() {
    let corrupt = [
        Progress {
            attempt_next: None,
            ..stands(SCHEDULED, 1, Some(2), 0)
        },
        Progress {
            next_fire_at: None,
            ..stands(SCHEDULING, 1, Some(2), 0)
        },
        stands(SCHEDULED, 1, Some(3), 0),
        stands(IN_FLIGHT, 0, None, 0),
        stands(State::Succeeded, 1, None, 0),
        Progress {
            end: Some(End::Answered),
            ..stands(State::Failed, 1, None, 0)
        },
        Progress {
            end: Some(End::Answered),
            ..stands(IN_FLIGHT, 1, None, 0)
        },
        stands(SCHEDULED, u32::MAX, Some(0), 0),
    ];
    for progress in corrupt {
        let decision = judge(&progress, &fire(2, 0));
        assert_eq!(
            (decision.write, decision.note),
            (None, Note::Corrupt),
            "{progress:?}"
        );
        assert_eq!(decision.effects, [Effect::Alert(AlertKind::CorruptRecord)]);
    }
}

#[test]
fn attempts_that_were_never_made_are_dropped() {
    for attempt in [0, 3, u32::MAX] {
        assert_eq!(
            judge(
                &stands(IN_FLIGHT, 1, None, 0),
                &answer(attempt, 0, Outcome::Success)
            )
            .note,
            Note::Late
        );
        assert_eq!(
            judge(&stands(SCHEDULED, 1, Some(2), 0), &fire(attempt, 0)).note,
            Note::Obsolete
        );
    }
}

#[test]
fn an_instant_at_the_end_of_9999_is_kept_and_none_goes_beyond() {
    let far = judge(
        &stands(SCHEDULED, 1, Some(2), 0),
        &Input::Move {
            to: Utc::MAX,
            reason: None,
        },
    );
    assert_eq!(
        far.write.and_then(|write| write.to.next_fire_at),
        Some(Utc::MAX)
    );
    let late = judge_at(
        Utc::MAX,
        &stands(IN_FLIGHT, 1, None, 0),
        &answer(1, 0, Outcome::Refused),
    );
    assert_eq!(
        late.write.and_then(|write| write.to.next_fire_at),
        Some(Utc::MAX)
    );
}

#[test]
fn a_dependency_may_ask_for_a_later_instant_but_not_for_any() {
    let asked = |hours| Input::Answer(Answer::new(1, 0, Outcome::Refused).not_before(at(hours)));
    let fire_at = |input| {
        judge(&stands(IN_FLIGHT, 1, None, 0), &input)
            .write
            .and_then(|write| write.to.next_fire_at)
    };
    assert_eq!(
        fire_at(asked(2)),
        Some(at(3)),
        "sooner than the policy's wait"
    );
    assert_eq!(fire_at(asked(9)), Some(at(9)));
    assert_eq!(fire_at(asked(9_000)), Some(at(25)), "24 h at most");
}
