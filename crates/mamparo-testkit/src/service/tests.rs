//! What the scripted services answer, count and refuse.

use super::{Door, FailsReadiness, NeverReady, ReadyAfter, Script, Step, Strict, Tracked, ready};
use crate::BoxError;
use mamparo_core::clock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tower_service::Service;

const SECOND: Duration = Duration::from_secs(1);

fn poll_ready<S: Service<u32>>(service: &mut S) -> Poll<Result<(), S::Error>> {
    service.poll_ready(&mut Context::from_waker(Waker::noop()))
}

fn panics(work: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

#[tokio::test(start_paused = true)]
async fn a_script_answers_step_by_step_and_then_by_default() {
    let start = clock::now();
    let mut script = Script::new([Step::answer(1).after(SECOND), Step::error("down")])
        .otherwise(|| Step::answer(9));
    assert_eq!(script.call(10).await.unwrap(), 1);
    assert_eq!(start.elapsed(), SECOND);
    assert_eq!(script.call(11).await.unwrap_err().to_string(), "down");
    assert_eq!(script.call(12).await.unwrap(), 9);
    assert_eq!(script.requests(), [10, 11, 12]);
    assert_eq!(script.starts(), [start, start + SECOND, start + SECOND]);
}

#[test]
fn a_script_without_a_default_panics_after_its_end() {
    let mut script = Script::<u32, u32>::new([]);
    assert!(panics(|| drop(script.call(1))));
}

#[tokio::test]
async fn a_script_counts_what_runs_ends_and_is_dropped() {
    let mut script = Script::new([Step::answer(1), Step::hang(), Step::hang()]);
    let mut clone = script.clone();
    let (first, second, third) = (script.call(1), clone.call(2), clone.call(3));
    assert_eq!((script.started(), script.running()), (3, 3));
    first.await.unwrap();
    drop(second);
    assert_eq!(
        (script.running(), script.finished(), script.dropped()),
        (1, 1, 1)
    );
    drop(third);
    assert_eq!((script.running(), script.max_running()), (0, 3));
}

#[tokio::test]
async fn a_step_that_panics_is_an_end_and_not_a_drop() {
    let mut script = Script::<u32, u32>::new([Step::panic()]);
    assert!(tokio::spawn(script.call(1)).await.unwrap_err().is_panic());
    assert_eq!(
        (script.running(), script.finished(), script.dropped()),
        (0, 1, 0)
    );
}

#[tokio::test]
async fn a_script_keeps_a_note_and_drops_the_request_with_its_call() {
    let (request, watch) = Tracked::new(7);
    let mut script = Script::noting(|request: &Tracked<i32>| request.value, [Step::answer(())]);
    let call = script.call(request);
    assert!(!watch.is_dropped());
    call.await.unwrap();
    assert!(watch.is_dropped());
    assert_eq!(script.requests(), [7]);
}

fn strict() -> Strict<Script<u32, u32>> {
    Strict::new(Script::new([]).otherwise(|| Step::answer(1)))
}

#[test]
fn strict_panics_when_it_was_not_polled_ready() {
    let mut service = strict();
    assert!(panics(|| drop(service.call(1))));
}

#[test]
fn strict_panics_at_the_second_call_for_one_readiness() {
    let mut service = strict();
    assert!(poll_ready(&mut service).is_ready());
    drop(service.call(1));
    assert!(panics(|| drop(service.call(2))));
}

#[test]
fn a_clone_of_a_ready_strict_is_not_ready() {
    let mut service = strict();
    assert!(poll_ready(&mut service).is_ready());
    let mut clone = service.clone();
    assert!(panics(|| drop(clone.call(1))));
    drop(service.call(2));
}

#[test]
fn strict_counts_slots_that_are_ready_and_not_called() {
    let (mut first, mut second) = (strict(), strict());
    let mut clone = first.clone();
    assert!(poll_ready(&mut first).is_ready() && poll_ready(&mut clone).is_ready());
    assert!(
        poll_ready(&mut first).is_ready(),
        "asking again takes no other slot"
    );
    assert!(poll_ready(&mut second).is_ready());
    assert_eq!((first.ready_slots(), second.ready_slots()), (2, 1));
    drop(clone);
    drop(first.call(1));
    assert_eq!(first.ready_slots(), 0);
}

#[tokio::test]
async fn a_slot_is_held_until_its_call_ends_and_then_wakes_who_waits() {
    let script = Script::<u32, u32>::new([Step::hang(), Step::answer(2)]);
    let mut holder = Strict::with_slots(script, 1);
    let mut waiter = holder.clone();
    ready(&mut holder).await.unwrap();
    assert!(poll_ready(&mut waiter).is_pending());
    let call = holder.call(1);
    let waiting = tokio::spawn(async move { ready(&mut waiter).await?.call(2).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(call);
    assert_eq!(waiting.await.unwrap().unwrap(), 2);
}

#[test]
fn readiness_that_became_pending_again_pays_for_no_call() {
    let door = Door::opened();
    let mut service = Strict::new(door.before(Script::<u32, u32>::new([])));
    assert!(poll_ready(&mut service).is_ready());
    door.close();
    assert!(poll_ready(&mut service).is_pending());
    assert!(panics(|| drop(service.call(1))));
}

#[tokio::test]
async fn a_door_wakes_who_waits_when_it_opens_or_breaks() {
    let turns: [fn(&Door); 2] = [Door::open, |door| door.fail("torn down")];
    for (turn, expected) in turns.into_iter().zip([Ok(()), Err("torn down".to_owned())]) {
        let door = Door::closed();
        let mut service = door.before(Script::<u32, u32>::new([]));
        let waiting = tokio::spawn(async move { ready(&mut service).await.map(drop) });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        turn(&door);
        let result = waiting.await.unwrap();
        assert_eq!(
            result.map_err(|error: BoxError| error.to_string()),
            expected
        );
    }
}

#[tokio::test(start_paused = true)]
async fn readiness_by_rote_comes_late_fails_or_never_comes() {
    let script = Script::<u32, u32>::new([]).otherwise(|| Step::answer(1));

    let mut late = ReadyAfter::polls(script.clone(), 2);
    assert!(poll_ready(&mut late).is_pending() && poll_ready(&mut late).is_pending());
    assert!(poll_ready(&mut late).is_ready());
    assert!(
        poll_ready(&mut late.clone()).is_pending(),
        "a clone starts anew"
    );

    let start = clock::now();
    let mut later = ReadyAfter::time(script, SECOND);
    assert_eq!(ready(&mut later).await.unwrap().call(1).await.unwrap(), 1);
    assert_eq!(start.elapsed(), SECOND);

    assert!(poll_ready(&mut NeverReady::<u32>::new()).is_pending());
    let mut broken = FailsReadiness::<u32>::new("gone");
    let waited = pin!(ready::<_, u32>(&mut broken)).await;
    assert_eq!(waited.unwrap_err().to_string(), "gone");
}
