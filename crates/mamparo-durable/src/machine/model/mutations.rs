//! Each rule taken away, and what must be found then: were it not, the searches would prove nothing about that rule.

use super::super::Guard;
use super::bounds::{Bounds, Looks, Repeat, Without};
use super::checks::search;
use super::judge::Wrong;

const NONE: Bounds = Bounds::none();
const CALM: Looks = Looks::WhenCalm;

const CRASH: Bounds = Bounds { crashes: 1, ..NONE };
const TECHNICAL: Bounds = Bounds {
    technical: 1,
    ..NONE
};
const OPERATOR: Bounds = Bounds {
    operators: 1,
    ..NONE
};
const LOSS: Bounds = Bounds {
    losses: 1,
    looks: CALM,
    ..NONE
};
const SILENT: Bounds = Bounds {
    repeat: Repeat::Silent,
    looks: CALM,
    ..TECHNICAL
};

/// The rule, the least that must happen for it to matter, and what goes wrong without it.
#[rustfmt::skip]
fn mutations() -> Vec<(Without, Bounds, Wrong)> {
    let guards = [
        (Guard::RereadAfterMiss, NONE, Wrong::Lost),
        (Guard::AdvanceOnClaim, NONE, Wrong::AnswerWithoutEffect),
        (Guard::LateAnswersAreDropped, CRASH, Wrong::ScheduleConflict),
        (Guard::AnswersCountInSending, NONE, Wrong::AnswerWithoutEffect),
        (Guard::SlowSuccessCounts, TECHNICAL, Wrong::AnswerWithoutEffect),
        (Guard::SlowRefusalCounts, TECHNICAL, Wrong::AnswerWithoutEffect),
        (Guard::RefusalNamesItsStates, CRASH, Wrong::EndChanged),
        (Guard::AttemptsAreCapped, NONE, Wrong::TooManyAttempts),
        (Guard::TechnicalNeedsSeq, Bounds { duplicates: 1, ..TECHNICAL }, Wrong::TechnicalCountedTwice),
        (Guard::TechnicalSpendsNoAttempt, TECHNICAL, Wrong::AttemptBeforeRefusal),
        (Guard::PostponementsAreCapped, Bounds { postponements: 0, ..TECHNICAL }, Wrong::TooManyPostponements),
        (Guard::AnswersResumeScheduling, CRASH, Wrong::Lost),
        (Guard::StoredInstant, CRASH, Wrong::ScheduleConflict),
        (Guard::FireNeedsSeq, OPERATOR, Wrong::OldFireClaims),
        (Guard::FireCountsInScheduling, NONE, Wrong::Lost),
        (Guard::FireResumesSending, CRASH, Wrong::Lost),
        (Guard::ObsoleteFireEnsures, Bounds { operators: 1, ..CRASH }, Wrong::Lost),
        (Guard::PostponeBeforeClaim, Bounds { postponements: 0, breaker: 1, ..CRASH }, Wrong::FailedThoughDone),
        (Guard::CreateBeforeDelete, Bounds { operators: 1, ..CRASH }, Wrong::Lost),
        (Guard::EndsAreToldAgain, CRASH, Wrong::NoAlert),
        (Guard::NoCancelInTechnicalWait, Bounds { operators: 1, ..TECHNICAL }, Wrong::FailedThoughDone),
        (Guard::ReconcilerResends, LOSS, Wrong::Lost),
        (Guard::ReconcilerGivesUp, SILENT, Wrong::Lost),
        (Guard::ReconcilerWaits, Bounds { looks: Looks::Anytime(1), ..NONE }, Wrong::ClaimedBeforeItsInstant),
    ];
    let others = [
        (Without::Fence, OPERATOR, Wrong::NumberUsedTwice),
        (Without::FenceOfSeq, OPERATOR, Wrong::NumberUsedTwice),
        (Without::SeqInNames, OPERATOR, Wrong::ScheduleConflict),
        (Without::ReconcilersFence, Bounds { looks: Looks::Anytime(1), ..OPERATOR }, Wrong::EndChanged),
        (Without::Reconciler, LOSS, Wrong::Lost),
    ];
    let guards = guards.map(|(guard, bounds, wrong)| (Without::Guard(guard), bounds, wrong));
    guards.into_iter().chain(others).collect()
}

#[test]
fn every_rule_taken_away_is_found_out() {
    for (without, bounds, expected) in mutations() {
        assert!(search(bounds, 1).is_ok(), "{bounds:?} is wrong already");
        let without_it = Bounds {
            without: Some(without),
            ..bounds
        };
        let (wrong, acts) =
            search(without_it, 1).expect_err(&format!("{without:?} makes no difference"));
        println!("{without:?}: {wrong:?} after {} steps", acts.len());
        assert_eq!(wrong, expected, "{without:?}: {acts:?}");
    }
}
