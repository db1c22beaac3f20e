//! What counts, over which calls, and when it opens.

use std::time::Duration;

use mamparo_core::{CallContext, Classify, Kind, Plain, Reason, Rejection, Resend, Verdict};
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, ServiceExt};

use super::cast::{Rig, SECOND, by_window, judged, millis, policy, within};
use crate::breaker::{BreakerLayer, BreakerState, Read, Reading, Window};

const GOOD: bool = true;
const BAD: bool = false;

/// Row A16: nor is it what *we* cancel, a hedge's loser say.
#[tokio::test(start_paused = true)]
async fn callers_that_go_away_say_nothing_and_are_counted_apart() {
    let rig = Rig::new(by_window().failure_rate(0.1).minimum_calls(1));
    for _ in 0..100 {
        rig.cancels(millis(10)).await;
    }
    let read = rig.read();
    assert_eq!(
        (read.state, read.cancelled, read.rates.calls),
        (BreakerState::Closed, 100, 0)
    );
}

/// Peer 4, law 6: what is cut at a limit of ours has failed, wherever the limit stands.
#[tokio::test(start_paused = true)]
async fn calls_that_hang_until_their_time_is_up_have_failed() {
    let rig = Rig::new(policy().consecutive_failures(2));
    // As a layer further out that cuts the call at its deadline.
    let mut hung = Box::pin(within(SECOND, rig.plays(Step::hang())));
    assert!(tokio::time::timeout(millis(1), &mut hung).await.is_err());
    CallContext::cut(|| drop(hung));
    assert_eq!(rig.read().consecutive_failures, 1);
    // As a caller that goes away only after the deadline.
    let late = within(SECOND, rig.plays(Step::hang()));
    assert!(tokio::time::timeout(SECOND, late).await.is_err());
    assert_eq!(rig.state(), BreakerState::Open);
}

/// Row B1.
#[tokio::test(start_paused = true)]
async fn what_comes_late_does_not_change_what_opened_it() {
    let rig = Rig::new(
        by_window()
            .failure_rate(1.0)
            .minimum_calls(2)
            .slow_calls(SECOND, 1.0),
    );
    let mut late = Vec::new();
    for _ in 0..3 {
        late.push(rig.starts(Step::answer(7).after(2 * SECOND)).await);
    }
    rig.plays_all(&[BAD, BAD]).await;
    for call in late {
        call.await.unwrap().unwrap();
    }
    let read = rig.read();
    assert_eq!((read.state, read.late), (BreakerState::Open, 3));
    assert_eq!(
        (read.rates.failure_rate(), read.rates.slow_rate()),
        (Some(1.0), Some(0.0))
    );
}

/// Rows B2, B3 and B4: by the monotonic clock, in as many counts as there were calls.
#[tokio::test(start_paused = true)]
async fn a_time_window_holds_the_calls_of_its_time_and_lets_them_go_after_it() {
    let window = Window::time(5 * SECOND);
    let rig = Rig::new(by_window().failure_rate(1.0).window(window));
    rig.plays_all(&[GOOD, BAD, GOOD, BAD]).await;
    tokio::time::sleep(millis(900)).await;
    for _ in 0..15 {
        rig.plays_all(&[GOOD, BAD]).await;
        tokio::time::sleep(millis(10)).await;
    }
    assert_eq!(rig.counts(), (34, 17, 0));
    tokio::time::sleep(millis(4_000)).await;
    assert_eq!(rig.counts(), (30, 15, 0), "it slides by a tenth");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(rig.counts(), (0, 0, 0));
}

/// Row B4, and peer 1: after any number of good calls as many bad ones open it as the window says.
#[tokio::test(start_paused = true)]
async fn a_count_window_holds_the_last_calls_only() {
    let rig = Rig::new(by_window().failure_rate(0.5).window(Window::calls(10)));
    for _ in 0..1_000 {
        rig.call().await.unwrap();
    }
    rig.plays_all(&[BAD; 4]).await;
    assert_eq!(
        (rig.state(), rig.counts()),
        (BreakerState::Closed, (10, 4, 0))
    );
    rig.plays_all(&[GOOD; 6]).await;
    assert_eq!(rig.counts(), (10, 4, 0));
    rig.plays_all(&[GOOD; 1]).await;
    assert_eq!(rig.counts(), (10, 3, 0));
    rig.plays_all(&[BAD; 2]).await;
    assert_eq!(rig.heard.changes(), Vec::<String>::new(), "3 - 2 + 2 of 10");
    rig.plays_all(&[BAD; 3]).await;
    assert_eq!(rig.heard.changes(), ["closed>open: failure_rate"]);
}

/// Row B6: rejected calls are in no denominator, and nothing is carried over from before.
#[tokio::test(start_paused = true)]
async fn the_denominator_is_of_calls_that_ended_since_it_closed() {
    for window in [Window::calls(100), Window::time(100 * SECOND)] {
        let rule = by_window()
            .failure_rate(0.5)
            .minimum_calls(1)
            .window(window);
        let rig = Rig::new(rule.successes_to_close(1));
        rig.fails().await;
        for _ in 0..9 {
            assert!(rig.is_rejected().await);
        }
        tokio::time::sleep(5 * SECOND).await;
        rig.call().await.unwrap();
        assert_eq!(
            (rig.state(), rig.counts()),
            (BreakerState::Closed, (0, 0, 0))
        );
        rig.plays_all(&[GOOD, GOOD, GOOD, BAD]).await;
        assert_eq!(rig.counts(), (4, 1, 0));
        rig.plays_all(&[BAD, BAD]).await;
        assert_eq!(rig.state(), BreakerState::Open, "3 of 6");
    }
}

/// Rows B7 and P-B18.
#[tokio::test(start_paused = true)]
async fn what_we_refuse_ourselves_never_counts_against_the_dependency() {
    let rig = Rig::new(by_window().failure_rate(0.5).minimum_calls(2));
    for reason in [
        Reason::BulkheadFull,
        Reason::RateLimited,
        Reason::DeadlineExceeded,
    ] {
        for _ in 0..4 {
            let refused = Rejection::refused(reason, "catalog".into());
            rig.plays(Step::error(refused)).await.unwrap_err();
        }
    }
    let read = rig.read();
    assert_eq!(
        (read.state, read.ignored, read.rates.calls),
        (BreakerState::Closed, 12, 0)
    );
    for _ in 0..2 {
        let cut = Rejection::cut(Reason::AttemptTimedOut, "catalog".into());
        rig.plays(Step::error(cut)).await.unwrap_err();
    }
    assert_eq!(rig.state(), BreakerState::Open, "a cut is no refusal");
}

/// Row B8: and the rule that works with little traffic.
#[tokio::test(start_paused = true)]
async fn below_the_minimum_rates_are_inert_and_say_so() {
    let rate = by_window().failure_rate(0.5).minimum_calls(100);
    let rig = Rig::new(rate.clone());
    for _ in 0..50 {
        rig.fails().await;
        tokio::time::sleep(millis(200)).await;
    }
    let rates = rig.read().rates;
    assert!(rates.below_minimum() && rates.failure_rate().is_none());
    assert_eq!((rig.state(), rates.minimum), (BreakerState::Closed, 100));
    for (rule, cause) in [
        (rate.clone().consecutive_failures(5), "consecutive_failures"),
        (rate.failures_in_window(5), "failure_count"),
    ] {
        let rig = Rig::new(rule);
        rig.plays_all(&[BAD; 5]).await;
        assert_eq!(rig.heard.changes(), [format!("closed>open: {cause}")]);
    }
}

/// Peer 2: a minimum below the window's size.
#[tokio::test(start_paused = true)]
async fn a_minimum_smaller_than_the_window_is_honoured() {
    let rule = by_window().failure_rate(0.5).window(Window::calls(100));
    let rig = Rig::new(rule.minimum_calls(4));
    rig.plays_all(&[GOOD, BAD, GOOD]).await;
    assert_eq!(rig.state(), BreakerState::Closed);
    rig.plays_all(&[BAD]).await;
    assert_eq!(rig.state(), BreakerState::Open);
}

/// An absolute count within a window that slides: five in ten seconds, and not five ever.
#[tokio::test(start_paused = true)]
async fn so_many_failures_within_the_window_open_it_and_the_same_number_over_more_time_does_not() {
    let rig = Rig::new(by_window().failures_in_window(5));
    for _ in 0..20 {
        rig.plays_all(&[GOOD, BAD, GOOD]).await;
        tokio::time::sleep(3 * SECOND).await;
    }
    assert_eq!(rig.state(), BreakerState::Closed);
    rig.plays_all(&[GOOD, BAD, GOOD, BAD]).await;
    assert_eq!(rig.heard.changes(), ["closed>open: failure_count"]);
}

#[tokio::test(start_paused = true)]
async fn a_success_ends_a_row_of_failures_and_an_ignored_end_does_not() {
    let rig = Rig::new(policy().consecutive_failures(3));
    rig.plays_all(&[BAD, BAD, GOOD, BAD, BAD]).await;
    rig.cancels(millis(1)).await;
    assert_eq!(
        (rig.state(), rig.read().consecutive_failures),
        (BreakerState::Closed, 2)
    );
    rig.plays_all(&[BAD]).await;
    assert_eq!(rig.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn slow_calls_count_whether_they_fail_or_not_and_from_the_threshold_on() {
    for window in [Window::calls(10), Window::time(60 * SECOND)] {
        let rule = by_window().slow_calls(millis(200), 0.5).minimum_calls(4);
        let rig = Rig::new(rule.window(window));
        rig.plays(Step::answer(7).after(millis(199))).await.unwrap();
        rig.plays(Step::error("down").after(millis(1)))
            .await
            .unwrap_err();
        rig.plays(Step::answer(7).after(millis(200))).await.unwrap();
        assert_eq!(
            (rig.state(), rig.counts()),
            (BreakerState::Closed, (3, 1, 1))
        );
        rig.plays(Step::error("down").after(SECOND))
            .await
            .unwrap_err();
        assert_eq!(rig.heard.changes(), ["closed>open: slow_rate"]);
    }
}

/// Rows B10 and B11: one precedence, whichever was said first; no error is a success by default.
#[test]
fn ignored_wins_over_recorded_and_that_over_counted() {
    let busy = Verdict::failure(Kind::Throttled, Resend::Never);
    let reading = Reading::default;
    let (record, ignore, count) = (Reading::record, Reading::ignore, Reading::count);
    type Said = [fn(Reading, Kind) -> Reading; 3];
    let all: [Said; 3] = [
        [record, ignore, count],
        [ignore, count, record],
        [count, record, ignore],
    ];
    for order in all {
        let set = order
            .iter()
            .fold(reading(), |set, set_one| set_one(set, Kind::Throttled));
        assert_eq!(set.read(busy), Read::Ignored);
    }
    let two = [
        reading().record(Kind::Throttled).count(Kind::Throttled),
        reading().count(Kind::Throttled).record(Kind::Throttled),
    ];
    assert_eq!(two.map(|set| set.read(busy)), [Read::Failure; 2]);
    assert_eq!(reading().count(Kind::Throttled).read(busy), Read::Success);
    for kind in [
        Kind::Connect,
        Kind::Reset,
        Kind::Timeout,
        Kind::Throttled,
        Kind::Unavailable,
        Kind::Server,
        Kind::Other,
    ] {
        let failed = Verdict::failure(kind, Resend::Never);
        assert_eq!(reading().read(failed), Read::Failure, "{kind:?}");
    }
    assert_eq!(
        reading().read(Verdict::failure(Kind::Client, Resend::Never)),
        Read::Success
    );
    assert_eq!(reading().read(Verdict::IGNORED), Read::Ignored);
}

/// Row B10: as a breaker uses it.
#[tokio::test(start_paused = true)]
async fn a_policy_reads_verdicts_by_its_rules() {
    for (policy, opens) in [
        (policy(), true),
        (policy().count(Kind::Throttled), false),
        (
            policy().ignore(Kind::Throttled).record(Kind::Throttled),
            false,
        ),
        (
            policy().record(Kind::Throttled).ignore(Kind::Throttled),
            false,
        ),
    ] {
        let throttled = Classify::<u32>::refine(Plain::idempotent(), judged(Kind::Throttled));
        let layer = BreakerLayer::new(policy.build().unwrap(), throttled);
        let peer = Script::<u32, u32>::new([Step::error("429")]);
        layer.layer(peer).oneshot(1).await.unwrap_err();
        assert_eq!(layer.handle().state() == BreakerState::Open, opens);
    }
}

/// Peer 7: what one call costs does not grow with how many there were.
#[test]
fn a_call_costs_the_same_however_many_there_were() {
    use super::super::circuit::Circuit;
    use super::super::journal::Journal;
    use super::super::window::Bad;
    use mamparo_core::clock;
    use std::sync::Arc;

    const FAILED: Bad = Bad {
        failed: true,
        slow: false,
    };
    for window in [Window::calls(100), Window::time(3600 * SECOND)] {
        let rule = by_window().failure_rate(1.0).window(window);
        let policy = Arc::new(rule.build().unwrap());
        let circuit = Circuit::new(policy, Arc::new(Journal::new()), None, true);
        let hundred_calls = || {
            let began = clock::now();
            for _ in 0..50 {
                circuit.good(circuit.admit(clock::now).unwrap(), clock::now);
                let ticket = circuit.admit(clock::now).unwrap();
                circuit.bad(ticket, FAILED, None, clock::now());
            }
            began.elapsed()
        };
        // The quickest of many: whatever else the machine does only ever adds to it.
        let quickest = |rounds: usize| (0..rounds).map(|_| hundred_calls()).min().unwrap();
        let early = quickest(20);
        let _between = quickest(1_000);
        let late = quickest(20);
        assert!(late < 5 * early, "{late:?}, and {early:?} at first");
    }
}
