use std::time::Duration;

use super::*;
use crate::breaker::{BreakerDecision, BreakerState};
use crate::{Deadline, clock};

fn begin(kind: LayerKind, dependency: &str) -> CallContext {
    CallContext::join(kind, dependency.into())
}

#[test]
fn the_outermost_layer_begins_the_operation_and_the_others_join() {
    let mut deadline = begin(LayerKind::Deadline, "catalog");
    assert_eq!((deadline.attempt(), deadline.sends()), (1, 0));
    deadline.enter(|| {
        let retry = begin(LayerKind::Retry, "catalog");
        assert_eq!(retry.operation(), deadline_operation());
        assert!(!retry.is_inside_retry());
    });
    fn deadline_operation() -> Option<OperationId> {
        CallContext::current().operation()
    }
}

#[test]
fn layers_in_any_order_make_one_operation() {
    let mut retry = begin(LayerKind::Retry, "");
    retry.enter(|| {
        let mut deadline = begin(LayerKind::Deadline, "catalog");
        assert_eq!(deadline.operation(), CallContext::current().operation());
        deadline.enter(|| CallContext::count_send("catalog".into()));
    });
    assert_eq!(retry.sends(), 1, "what is counted inside comes back");
    retry.enter(|| {
        let second = begin(LayerKind::Deadline, "catalog");
        assert_eq!(second.operation(), CallContext::current().operation());
    });
}

#[test]
fn a_call_to_another_dependency_is_a_nested_operation() {
    let bound = Deadline::after(clock::now(), Duration::from_secs(1));
    let mut outer = begin(LayerKind::Retry, "catalog").with_deadline(bound);
    outer.enter(|| {
        let mut token = begin(LayerKind::Retry, "auth");
        assert_ne!(token.operation(), CallContext::current().operation());
        assert_eq!(token.deadline(), Some(bound), "the deadline is inherited");
        assert!(token.is_inside_retry());
        token.enter(|| assert_eq!(CallContext::count_send("auth".into()), 0));
    });
    assert_eq!(outer.sends(), 0, "the token request is not a resend");
    outer.enter(|| assert_eq!(CallContext::count_send("auth".into()), 0));
    assert_eq!(outer.sends(), 0);
}

#[test]
fn a_second_layer_of_the_same_kind_begins_a_nested_operation() {
    let mut outer = begin(LayerKind::Deadline, "catalog");
    outer.enter(|| {
        let inner = begin(LayerKind::Deadline, "catalog");
        assert_ne!(inner.operation(), CallContext::current().operation());
        assert!(!inner.is_inside_retry());
    });
}

#[test]
fn sends_are_numbered_across_attempts() {
    let mut operation = begin(LayerKind::Retry, "catalog");
    let counts: Vec<u32> = (0..3)
        .map(|_| operation.enter(|| CallContext::count_send("catalog".into())))
        .collect();
    assert_eq!(counts, [0, 1, 2]);
    assert_eq!(
        CallContext::count_send("catalog".into()),
        0,
        "outside of an operation"
    );
}

#[test]
fn a_resend_inside_is_reported_to_every_retry_around_it() {
    let mut outer = begin(LayerKind::Retry, "a");
    outer.enter(|| {
        let mut middle = begin(LayerKind::Retry, "b");
        middle.enter(|| begin(LayerKind::Retry, "c").enter(CallContext::report_resend));
    });
    assert!(outer.has_resent_inside());
    assert!(
        !CallContext::current().has_resent_inside(),
        "nothing is left on the thread"
    );
}

#[test]
fn a_panic_inside_restores_the_outer_context() {
    let mut context = begin(LayerKind::Retry, "catalog");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        context.enter(|| panic!("inside"));
    }));
    assert!(caught.is_err());
    assert!(CallContext::current().operation().is_none());
}

#[tokio::test]
async fn carry_takes_the_deadline_into_a_task_and_detach_leaves_it() {
    let deadline = Deadline::after(clock::now(), Duration::from_secs(1));
    let mut context = CallContext::current().with_deadline(deadline);
    let (carried, detached, plain) = context.enter(|| {
        let read = || async { CallContext::current().deadline() };
        (
            tokio::spawn(carry(read())),
            tokio::spawn(detach(read())),
            tokio::spawn(read()),
        )
    });
    assert_eq!(carried.await.unwrap(), Some(deadline));
    assert_eq!(detached.await.unwrap(), None);
    assert_eq!(plain.await.unwrap(), None);
}

#[test]
fn an_attempts_own_limit_is_an_instant_of_its_own() {
    let now = clock::now();
    let deadline = Deadline::after(now, Duration::from_secs(2));
    let context = CallContext::EMPTY
        .with_deadline(deadline)
        .with_attempt_timeout(now, Duration::from_millis(500));
    assert_eq!(context.attempt_timeout(), Duration::from_millis(500));
    assert_eq!(
        context.attempt_cut(),
        Some(Deadline::after(now, Duration::from_millis(500)))
    );
    assert_eq!(context.deadline(), Some(deadline));
}

/// RC-08: as a hedge does, which drives two attempts of one operation side by side.
#[test]
fn sends_are_numbered_across_attempts_that_run_side_by_side() {
    let mut operation = begin(LayerKind::Retry, "catalog");
    let send = || CallContext::count_send("catalog".into());
    let attempt = |operation: &mut CallContext| {
        let mut attempt = operation.enter(CallContext::current);
        let number = operation.enter(|| attempt.enter(send));
        (attempt, number)
    };
    let (mut first, original) = attempt(&mut operation);
    let (_, hedge) = attempt(&mut operation);
    let redirect = operation.enter(|| first.enter(send));
    let (_, retry) = attempt(&mut operation);
    assert_eq!([original, hedge, redirect, retry], [0, 1, 2, 3]);
}

/// A proxy sends the body of one answer as that of its own request: each poll is then inside of both.
#[test]
fn an_earlier_resend_is_not_reported_to_whoever_reads_the_body_later() {
    let mut first = begin(LayerKind::Deadline, "a");
    first.enter(CallContext::report_resend);
    let mut body = first;
    let mut second = begin(LayerKind::Retry, "b");
    second.enter(|| body.enter(|| ()));
    assert!(!second.has_resent_inside());
}

#[test]
fn the_resend_of_an_earlier_call_in_an_operation_is_not_inside_of_the_next() {
    let mut operation = begin(LayerKind::Operation, "catalog");
    operation.enter(|| begin(LayerKind::Retry, "catalog").enter(CallContext::report_resend));
    assert!(operation.has_resent_inside());
    let next = operation.enter(|| begin(LayerKind::Retry, "catalog"));
    assert!(!next.has_resent_inside());
}

#[test]
fn a_nested_operation_ends_before_the_attempt_around_it() {
    let now = clock::now();
    let second = Duration::from_secs(1);
    let mut outer = begin(LayerKind::Deadline, "catalog")
        .with_deadline(Deadline::after(now, second))
        .with_reserve(Duration::from_millis(50));
    let reserved = Deadline::after(now, Duration::from_millis(950));
    outer.enter(|| assert_eq!(begin(LayerKind::Retry, "auth").deadline(), Some(reserved)));
    let mut attempt = outer.with_attempt_timeout(now, Duration::from_millis(300));
    let cut = Deadline::after(now, Duration::from_millis(300));
    attempt.enter(|| assert_eq!(begin(LayerKind::Retry, "auth").deadline(), Some(cut)));
}

#[test]
fn what_layers_note_inside_is_seen_by_whoever_began_the_operation() {
    let mut operation = Scope::join(LayerKind::Operation, "catalog".into());
    operation.enter(|| {
        let mut retry = Scope::join(LayerKind::Retry, "catalog".into());
        CallContext::note_queue("".into(), Duration::from_millis(3), Some(64));
        retry.enter(|| {
            let (open, no) = (BreakerState::Open, BreakerDecision::Rejected);
            CallContext::note_breaker("catalog".into(), open, no);
        });
    });
    let seen = operation.context();
    assert_eq!(
        seen.breaker(),
        Some((BreakerState::Open, BreakerDecision::Rejected))
    );
    assert_eq!(seen.queue_wait(), Some(Duration::from_millis(3)));
    assert_eq!(seen.limit_in_force(), Some(64));
}

#[test]
fn notes_are_of_one_operation_and_one_dependency() {
    let note =
        |dependency: &str| CallContext::note_queue(dependency.into(), Duration::ZERO, Some(8));
    let mut outer = Scope::join(LayerKind::Retry, "catalog".into());
    outer.enter(|| {
        note("auth");
        assert_eq!(CallContext::current().limit_in_force(), None);
        note("catalog");
        let mut token = Scope::join(LayerKind::Retry, "auth".into());
        token.enter(|| assert_eq!(CallContext::current().limit_in_force(), None));
    });
    note("catalog");
    assert_eq!(CallContext::current().limit_in_force(), None);
}

#[test]
fn a_wait_under_a_rate_limit_is_noted_for_its_attempt_alone() {
    let mut retry = Scope::join(LayerKind::Retry, "catalog".into());
    let waited = Duration::from_millis(5);
    retry.set_attempt(1, 3, Cause::Original);
    retry.enter(|| CallContext::note_rate_limit("catalog".into(), waited));
    assert_eq!(
        retry.enter(|| CallContext::current().rate_limit_wait()),
        Some(waited)
    );
    retry.set_attempt(2, 3, Cause::Retry);
    assert_eq!(
        retry.enter(|| CallContext::current().rate_limit_wait()),
        None
    );
}
