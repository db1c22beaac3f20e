//! What becomes of a message: the table, pure.

use std::time::Duration;

use mamparo_core::{BoxError, Classify, Dependency, Kind, Reason, Rejection, Resend, Verdict};

use crate::consumer::{Outcome, settle};
use crate::{DeadReason, MessageClass, Panics, Permanent, Settled};

const MAX: u32 = 5;

fn settled(outcome: &Outcome, attempt: u32) -> Settled {
    settle(outcome, attempt, MAX, Panics::Permanent)
}

fn retry(attempts: u32) -> Settled {
    Settled::Retry {
        attempts,
        hint: None,
    }
}

fn dead(attempts: u32, reason: DeadReason) -> Settled {
    Settled::Dead { attempts, reason }
}

fn judged(error: impl Into<BoxError>) -> Outcome {
    let error = error.into();
    Outcome::Judged(Classify::<()>::head(&MessageClass, Err(&error)).verdict)
}

#[test]
fn each_outcome_has_its_place() {
    let rejected = |reason| judged(Rejection::refused(reason, Dependency::named("psp")));
    let cut = |reason| judged(Rejection::cut(reason, Dependency::named("psp")));
    let exhausted = dead(MAX, DeadReason::Exhausted);
    let passes = [
        judged("the database is away"),
        judged(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)),
        rejected(Reason::BreakerOpen),
        rejected(Reason::BulkheadFull),
        rejected(Reason::RateLimited),
        cut(Reason::AttemptTimedOut),
        cut(Reason::DeadlineExceeded),
        Outcome::TimedOut,
        Outcome::Judged(Verdict::IGNORED),
        Outcome::Judged(Verdict::failure(Kind::Server, Resend::Never).forbidden()),
        Outcome::Judged(Verdict::failure(Kind::Timeout, Resend::Never)),
    ];
    for outcome in passes {
        assert_eq!(settled(&outcome, 1), retry(1), "{outcome:?}");
        assert_eq!(settled(&outcome, MAX - 1), retry(MAX - 1), "{outcome:?}");
        assert_eq!(settled(&outcome, MAX), exhausted, "{outcome:?}");
    }
    let wrapped = std::io::Error::other(Permanent::new("no JSON"));
    for attempt in [1, MAX] {
        assert_eq!(
            settled(&Outcome::Judged(Verdict::SUCCESS), attempt),
            Settled::Done
        );
        let permanent = dead(attempt, DeadReason::Permanent);
        assert_eq!(
            settled(&judged(Permanent::new("no JSON")), attempt),
            permanent
        );
        assert_eq!(
            settled(
                &Outcome::Judged(Verdict::failure(Kind::Client, Resend::Never)),
                attempt
            ),
            permanent
        );
        assert_eq!(
            settled(&Outcome::Panicked, attempt),
            dead(attempt, DeadReason::Panic)
        );
        assert_eq!(
            settled(&Outcome::TooBig, attempt),
            dead(attempt, DeadReason::TooBig)
        );
    }
    assert_eq!(settled(&judged(wrapped), 1), dead(1, DeadReason::Permanent));
}

#[test]
fn a_panic_is_a_failure_like_any_other_if_it_is_set_so() {
    assert_eq!(
        settle(&Outcome::Panicked, 1, MAX, Panics::Transient),
        retry(1)
    );
    assert_eq!(
        settle(&Outcome::Panicked, MAX, MAX, Panics::Transient),
        dead(MAX, DeadReason::Exhausted)
    );
}

#[test]
fn a_handlers_hint_travels_along() {
    let hint = Duration::from_secs(7);
    let busy = Verdict::failure(Kind::Throttled, Resend::IfIdempotent).after(hint);
    assert_eq!(
        settled(&Outcome::Judged(busy), 1),
        Settled::Retry {
            attempts: 1,
            hint: Some(hint)
        }
    );
}
