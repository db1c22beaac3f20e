//! An attempt beside the first: paid for, waiting for its own readiness, then under way.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mamparo_core::budget::{InFlight, Withdrawal};
use mamparo_core::clock::{self, Instant};
use mamparo_core::{BoxError, CallContext, Cause, Event, Kind, Observer, Scope, What};
use pin_project::pin_project;
use tower_service::Service;

/// What all attempts of an operation play in, one at a time.
pub(super) struct Scene {
    pub(super) scope: Scope,
    /// As many attempts as there may be.
    pub(super) most: u32,
    /// As many as were sent.
    pub(super) called: u32,
}

impl Scene {
    /// Makes an attempt the current one.
    #[inline]
    pub(super) fn turn_to(&mut self, attempt: u32) {
        let cause = match attempt {
            1 => Cause::Original,
            _ => Cause::Hedge,
        };
        self.scope.set_attempt(attempt, self.most, cause);
    }

    /// Makes an attempt the current one that was never processed, and is sent once more.
    fn turn_to_again(&mut self, attempt: u32) {
        self.scope
            .set_attempt(attempt, self.most, Cause::Transparent);
    }

    #[inline]
    pub(super) fn report(&self, observer: Option<&Arc<dyn Observer>>, what: What<'_>) {
        if let Some(observer) = observer {
            Event::report(Some(observer), &self.scope.context(), what);
        }
    }
}

/// Why an attempt is made, for whoever hears of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Why {
    pub(super) reason: Option<Kind>,
    pub(super) delay: Duration,
}

/// The tokens for an attempt that was not sent yet; they go back when they are dropped.
pub(super) struct Paid {
    pub(super) budget: Withdrawal,
    /// None where a plan of the method's own says how much load there may be.
    pub(super) extra: Option<Withdrawal>,
}

/// The tokens of an attempt that was sent.
pub(super) struct Spent {
    budget: InFlight,
    extra: Option<InFlight>,
}

impl Spent {
    /// Gives the tokens back after all: something on our side refused to send.
    pub(super) fn not_sent(self) {
        self.budget.not_sent();
        if let Some(extra) = self.extra {
            extra.not_sent();
        }
    }
}

/// One attempt beside the first.
#[pin_project]
pub(super) struct Arm<S: Service<W>, W> {
    #[pin]
    state: State<S, S::Future, W>,
    pub(super) run: Run,
    spent: Option<Spent>,
    /// None for an attempt that is sent once more, and counts as no other.
    why: Option<Why>,
    prepared: Instant,
}

/// What is known of an attempt that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) number: u32,
    /// As many physical sends as it made.
    pub(super) sends: u32,
    /// When it was sent, as far as anybody asks; none before.
    pub(super) started: Option<Instant>,
    /// Whether it was sent before, was never processed, and is sent once more.
    pub(super) sent_before: bool,
}

impl Run {
    pub(super) const fn numbered(number: u32) -> Self {
        Self {
            number,
            sends: 0,
            started: None,
            sent_before: false,
        }
    }
}

#[pin_project(project = StateProjected)]
enum State<S, F, W> {
    Readying {
        service: S,
        /// Until it is sent.
        next: Option<(W, Option<Paid>)>,
    },
    Running {
        #[pin]
        future: F,
    },
}

/// How an attempt ended.
pub(super) enum End<Res> {
    /// With an answer or an error.
    Sent(Result<Res, BoxError>),
    /// It was not sent: the inner service failed before it was ready.
    NotReady(BoxError),
    /// It was not sent: the deadline came first.
    TooLate,
}

impl<S, W> Arm<S, W>
where
    S: Service<W>,
    S::Error: Into<BoxError>,
{
    /// An attempt that is prepared `now`.
    pub(super) fn new(
        service: S,
        number: u32,
        (wire, paid): (W, Paid),
        why: Why,
        now: Instant,
    ) -> Self {
        Self {
            state: State::Readying {
                service,
                next: Some((wire, Some(paid))),
            },
            run: Run::numbered(number),
            spent: None,
            why: Some(why),
            prepared: now,
        }
    }

    /// The same attempt once more: what was paid for it pays for this.
    pub(super) fn again(
        service: S,
        number: u32,
        (wire, spent): (W, Option<Spent>),
        now: Instant,
    ) -> Self {
        Self {
            state: State::Readying {
                service,
                next: Some((wire, None)),
            },
            run: Run {
                sent_before: true,
                ..Run::numbered(number)
            },
            spent,
            why: None,
            prepared: now,
        }
    }

    /// What is left of an attempt that has ended; dropped with it are its future, and the permits in there.
    pub(super) fn into_run(mut self: Pin<Box<Self>>) -> (Run, Option<Spent>) {
        let this = self.as_mut().project();
        (*this.run, this.spent.take())
    }

    /// Polls the attempt in its own place; `beside` others are under way.
    pub(super) fn poll(
        self: Pin<&mut Self>,
        scene: &mut Scene,
        beside: u32,
        observer: Option<&Arc<dyn Observer>>,
        cx: &mut Context<'_>,
    ) -> Poll<End<S::Response>> {
        let mut this = self.project();
        match this.why {
            Some(_) => scene.turn_to(this.run.number),
            None => scene.turn_to_again(this.run.number),
        }
        loop {
            let (service, next) = match this.state.as_mut().project() {
                StateProjected::Running { future } => {
                    let polled = this.run.within(scene, || future.poll(cx));
                    return polled.map(|outcome| End::Sent(outcome.map_err(Into::into)));
                }
                StateProjected::Readying { service, next } => (service, next),
            };
            let now = clock::now();
            // It had fitted when it was decided, but readiness may take its time.
            if scene.scope.attempt_remaining(now) == Some(Duration::ZERO) {
                return Poll::Ready(End::TooLate);
            }
            if let Err(error) = ready!(scene.scope.enter(|| service.poll_ready(cx))) {
                return Poll::Ready(End::NotReady(error.into()));
            }
            let Some((wire, paid)) = next.take() else {
                return Poll::Pending; // not reached: the state changes as the request is taken
            };
            this.run.started = Some(now);
            if let (Some(paid), Some(why)) = (paid, *this.why) {
                // Heard by the owners of resends around this one, so it is said outside of its own context.
                CallContext::report_resend();
                *this.spent = Some(Spent {
                    budget: paid.budget.spend(),
                    extra: paid.extra.map(Withdrawal::spend),
                });
                scene.called += 1;
                let sent = What::HedgeSent {
                    attempt: this.run.number,
                    beside,
                    reason: why.reason,
                    delay: why.delay,
                };
                scene.report(observer, sent);
            }
            // Prepared as the last of the others ended, where none is under way.
            let pause = match beside {
                0 => now.saturating_duration_since(*this.prepared),
                _ => Duration::ZERO,
            };
            let future = this.run.within(scene, || {
                CallContext::note_resend(pause);
                service.call(wire)
            });
            this.state.set(State::Running { future });
        }
    }
}

impl Run {
    /// Runs in the attempt's own context, and counts what it sends.
    #[inline]
    pub(super) fn within<R>(&mut self, scene: &mut Scene, run: impl FnOnce() -> R) -> R {
        let before = scene.scope.sends();
        let result = scene.scope.enter(run);
        self.sends += scene.scope.sends().saturating_sub(before);
        result
    }
}
