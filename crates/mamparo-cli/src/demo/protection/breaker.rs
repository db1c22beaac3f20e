//! A dependency that goes down and comes back, behind a breaker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::StatusCode;
use mamparo::breaker::{BreakerHandle, BreakerPolicy, BreakerState, Ramp, Transition, Transitions};
use mamparo::retry::RetryPolicy;
use mamparo_core::clock::{self, Instant};
use mamparo_core::{BoxError, InvalidSetting};
use serde::Serialize;

use super::load::{Call, End, offer, percentile};
use crate::demo::cast::text;
use crate::demo::client::{Observed, stack, via_hyper};
use crate::demo::peer::{Peer, Reply};
use crate::telemetry::Pipeline;
use crate::trace::ms;

/// So many failures in a row open it.
pub(super) const THRESHOLD: u32 = 5;

/// So many probes are let through at once.
pub(super) const PROBES: u32 = 3;

/// How long it stays open at first, and then.
const OPEN: (Duration, Duration) = (Duration::from_millis(300), Duration::from_millis(450));

/// How long admission grows after it has closed.
const RAMP: Duration = Duration::from_millis(1_000);

/// One call in each.
const PACE: Duration = Duration::from_millis(5);

/// How long the dependency is well at first, and is watched when all is well again.
const WELL: Duration = Duration::from_millis(300);

/// The breaker opens a second time, and so much later the dependency is back.
const BACK_AFTER: Duration = Duration::from_millis(100);

/// Whatever happens, it is over then.
const LIMIT: Duration = Duration::from_secs(8);

/// How long an answer takes, and how long a failure does.
const ANSWERS: Duration = Duration::from_millis(15);
const FAILS: Duration = Duration::from_millis(30);

/// A point of the time line covers so much.
pub(in crate::demo) const SLICE: Duration = Duration::from_millis(50);

/// What came of it.
#[derive(Debug, Serialize)]
pub(in crate::demo) struct Outage {
    pub(super) offered: u32,
    pub(super) admitted: u32,
    pub(super) rejected: u32,
    pub(super) failed: u32,
    /// How many calls were made while the dependency was down, and how many of them reached it.
    pub(super) while_down: u32,
    pub(super) reached_while_down: u32,
    /// As many were under way when it opened first.
    pub(super) under_way: u32,
    /// How long half of the rejections took at most, in microseconds.
    pub(super) rejected_within_us: f64,
    /// The breaker's states, one after the other.
    pub(in crate::demo) bands: Vec<Band>,
    /// What was admitted in each quarter of the ramp, and after it.
    pub(super) ramp: Vec<Step>,
    pub(in crate::demo) time_line: Vec<Slice>,
}

/// A state, and for how long it lasted.
#[derive(Debug, Serialize)]
pub(in crate::demo) struct Band {
    pub(in crate::demo) state: &'static str,
    pub(in crate::demo) from_ms: f64,
    pub(in crate::demo) until_ms: f64,
    pub(super) offered: u32,
    pub(super) admitted: u32,
    pub(super) failed: u32,
}

/// A part of the ramp.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Step {
    pub(super) offered: u32,
    pub(super) admitted: u32,
}

/// What happened within a short while; calls are counted where they began.
#[derive(Debug, Serialize)]
pub(in crate::demo) struct Slice {
    pub(in crate::demo) at_ms: f64,
    pub(in crate::demo) offered: u32,
    pub(in crate::demo) admitted: u32,
    pub(in crate::demo) failed: u32,
}

/// What the dependency is told, and what it noted.
#[derive(Debug, Default)]
struct Stage {
    down: AtomicBool,
    reached: AtomicU32,
}

/// Takes the dependency down and brings it back, under an even load.
pub(super) async fn outage(telemetry: &Pipeline) -> Result<Outage, BoxError> {
    let stage = Arc::new(Stage::default());
    let peer = inventory(Arc::clone(&stage)).await?;
    let stack = guarded(telemetry)?;
    let Some(handle) = stack.breaker_handle() else {
        return Err("the breaker is off".into());
    };
    let mut transitions = handle.transitions();
    let mut script = Script::new(&stage, &handle);
    let began = clock::now();
    let client = via_hyper(&stack);
    let calls = offer(client, &peer.url("/stock"), PACE, |at| script.step(at)).await?;
    let (down, up) = script.down.zip(script.up).unwrap_or_default();
    let changes = changes(&mut transitions, began);
    Ok(Outage::of(
        &calls,
        &changes,
        (down, up),
        stage.reached.load(Relaxed),
    ))
}

async fn inventory(stage: Arc<Stage>) -> Result<Peer, BoxError> {
    let peer = Peer::start(move |_| {
        if stage.down.load(Relaxed) {
            stage.reached.fetch_add(1, Relaxed);
            let busy = text(StatusCode::SERVICE_UNAVAILABLE, "down\n".to_owned());
            return Reply::Late(FAILS, busy);
        }
        Reply::Late(ANSWERS, text(StatusCode::OK, "12 left\n".to_owned()))
    });
    Ok(peer.await?)
}

fn guarded(telemetry: &Pipeline) -> Result<Observed, InvalidSetting> {
    let breaker = BreakerPolicy::builder()
        .consecutive_failures(THRESHOLD)
        .probes(PROBES)
        .open_wait(OPEN.0, OPEN.1)
        .open_wait_growth(1.5)
        .open_wait_jitter(0.0)
        .ramp(Ramp::linear(0.1, RAMP)?);
    let waits = Duration::from_secs(2);
    let stack = stack(telemetry, "inventory", waits, waits)?;
    let once = RetryPolicy::builder().max_attempts(1);
    Ok(stack.retry(once.build()?).breaker(breaker.build()?))
}

/// When the dependency goes down and comes back: told by what the breaker does, not by the clock.
struct Script<'a> {
    stage: &'a Stage,
    breaker: &'a BreakerHandle,
    down: Option<Duration>,
    opened_again: Option<Duration>,
    up: Option<Duration>,
    closed: Option<Duration>,
}

impl<'a> Script<'a> {
    const fn new(stage: &'a Stage, breaker: &'a BreakerHandle) -> Self {
        Self {
            stage,
            breaker,
            down: None,
            opened_again: None,
            up: None,
            closed: None,
        }
    }

    /// Does what is due at this time; tells whether the scene is over.
    fn step(&mut self, at: Duration) -> bool {
        let now = self.breaker.snapshot();
        let is_past = |start: Option<Duration>, by| start.is_some_and(|start| at >= start + by);
        if self.down.is_none() && at >= WELL {
            self.stage.down.store(true, Relaxed);
            self.down = Some(at);
        }
        if now.openings >= 2 {
            self.opened_again.get_or_insert(at);
        }
        if self.up.is_none() && is_past(self.opened_again, BACK_AFTER) {
            self.stage.down.store(false, Relaxed);
            self.up = Some(at);
        }
        if self.up.is_some() && now.state == BreakerState::Closed {
            self.closed.get_or_insert(at);
        }
        at >= LIMIT || is_past(self.closed, RAMP + WELL)
    }
}

/// Reads all changes of state so far, and when each was.
fn changes(transitions: &mut Transitions, began: Instant) -> Vec<(Duration, BreakerState)> {
    let mut changes = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Transition { to, at, .. }) = transitions.poll_next(&mut cx) {
        changes.extend(to.map(|to| (at.saturating_duration_since(began), to)));
    }
    changes
}

impl Outage {
    fn of(
        calls: &[Call],
        changes: &[(Duration, BreakerState)],
        (down, up): (Duration, Duration),
        reached_while_down: u32,
    ) -> Self {
        let last = calls.last().map_or(Duration::ZERO, |call| call.at);
        let all = Count::within(calls, Duration::ZERO, Duration::MAX);
        let opened = changes.first().map_or(Duration::MAX, |(at, _)| *at);
        let under_way = calls
            .iter()
            .filter(|call| call.at <= opened && call.at.saturating_add(call.took) >= opened);
        let mut rejected = calls.to_vec();
        rejected.retain(|call| call.end == End::Rejected);
        let closed = changes
            .iter()
            .rev()
            .find(|(_, to)| *to == BreakerState::Closed);
        Self {
            offered: all.offered,
            admitted: all.admitted,
            rejected: all.offered - all.admitted,
            failed: all.failed,
            while_down: Count::within(calls, down, up).offered,
            reached_while_down,
            under_way: under_way.count() as u32,
            rejected_within_us: ms(percentile(&rejected, 0.5)) * 1e3,
            bands: bands(calls, changes, last),
            ramp: closed.map_or_else(Vec::new, |(at, _)| ramp(calls, *at)),
            time_line: time_line(calls, last),
        }
    }
}

fn bands(calls: &[Call], changes: &[(Duration, BreakerState)], last: Duration) -> Vec<Band> {
    let starts = [(Duration::ZERO, BreakerState::Closed)];
    let states: Vec<_> = starts.iter().chain(changes).copied().collect();
    let ends = states.iter().skip(1).map(|(at, _)| *at).chain([last]);
    let band = |((from, state), until): (&(Duration, BreakerState), Duration)| Band {
        state: state.as_str(),
        from_ms: ms(*from),
        until_ms: ms(until),
        offered: 0,
        admitted: 0,
        failed: 0,
    };
    let mut bands: Vec<_> = states.iter().zip(ends).map(band).collect();
    for call in calls {
        let begun = states.iter().filter(|(from, _)| *from <= call.at).count();
        let band = begun.saturating_sub(1);
        // The call that comes when the wait is over makes the breaker half-open, and is its first probe.
        let is_open = states.get(band).map(|(_, state)| *state) == Some(BreakerState::Open);
        let probes = is_open && call.end != End::Rejected;
        if let Some(band) = bands.get_mut(band + usize::from(probes)) {
            band.offered += 1;
            band.admitted += u32::from(call.end != End::Rejected);
            band.failed += u32::from(call.end == End::Failed);
        }
    }
    bands
}

/// Four quarters of the ramp, and what came after.
fn ramp(calls: &[Call], closed: Duration) -> Vec<Step> {
    let quarter = RAMP / 4;
    // What was on its way to the breaker as the ramp ended may have been met by it.
    let after = closed + RAMP + PACE;
    let mut parts: Vec<_> = (0..4)
        .map(|part| (closed + quarter * part, closed + quarter * (part + 1)))
        .collect();
    parts.push((after, Duration::MAX));
    let step = |(from, until)| {
        let count = Count::within(calls, from, until);
        Step {
            offered: count.offered,
            admitted: count.admitted,
        }
    };
    parts.into_iter().map(step).collect()
}

fn time_line(calls: &[Call], last: Duration) -> Vec<Slice> {
    let slices = last.as_millis() / SLICE.as_millis();
    let slice = |number: u32| {
        let from = SLICE * number;
        let count = Count::within(calls, from, from + SLICE);
        Slice {
            at_ms: ms(from),
            offered: count.offered,
            admitted: count.admitted,
            failed: count.failed,
        }
    };
    (0..slices as u32).map(slice).collect()
}

/// How the calls went that began within a time.
struct Count {
    offered: u32,
    admitted: u32,
    failed: u32,
}

impl Count {
    fn within(calls: &[Call], from: Duration, until: Duration) -> Self {
        let mut count = Self {
            offered: 0,
            admitted: 0,
            failed: 0,
        };
        for call in calls.iter().filter(|call| (from..until).contains(&call.at)) {
            count.offered += 1;
            count.admitted += u32::from(call.end != End::Rejected);
            count.failed += u32::from(call.end == End::Failed);
        }
        count
    }
}
