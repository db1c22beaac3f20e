//! The limits of one body, and the wait for its next frame.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mamparo_core::clock::{self, Instant};
use mamparo_core::{CallContext, Deadline, Rejection};
use pin_project::{pin_project, pinned_drop};
use tokio::time::Sleep;

use super::BodyLimits;

/// How many boxes a thread keeps for the bodies to come.
const KEPT: usize = 64;

type Place = Pin<Box<Option<Bounds>>>;

thread_local! {
    // Two layers bound the body of each answer, and for both an allocation would be the dearest part of it.
    static FREE: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// The limits of a body, in a box of its thread's so that a response stays small and is cheap to move.
pub(super) struct Bounded(Option<Place>);

/// The limits of a body, and the wait for its next frame.
#[pin_project(PinnedDrop)]
pub(super) struct Bounds {
    pub(super) limits: BodyLimits,
    /// When the wait ends, while a frame is waited for.
    pub(super) idle_until: Option<Deadline>,
    /// Made when something is pending.
    #[pin]
    timer: Option<Sleep>,
}

impl Bounded {
    /// Nothing bounds the body.
    pub(super) const NOT: Self = Self(None);

    #[inline(never)]
    pub(super) fn by(limits: BodyLimits) -> Self {
        let bounds = Some(Bounds {
            limits,
            idle_until: None,
            timer: None,
        });
        let free = FREE.try_with(|free| free.borrow_mut().pop());
        Self(Some(match free {
            Ok(Some(mut place)) => {
                place.set(bounds);
                place
            }
            _ => Box::pin(bounds),
        }))
    }

    #[inline]
    pub(super) fn get(&mut self) -> Option<Pin<&mut Bounds>> {
        self.0.as_mut()?.as_mut().as_pin_mut()
    }
}

impl Drop for Bounded {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            recycle(place);
        }
    }
}

#[inline(never)] // most responses of the smallest calls have none
fn recycle(mut place: Place) {
    place.set(None);
    let _at_the_threads_end = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        if free.len() < KEPT {
            free.push(place);
        }
    });
}

impl Bounds {
    /// Waits until a limit is reached; for ever where there is none.
    pub(super) fn poll_reached(
        self: Pin<&mut Self>,
        promised: Option<Deadline>,
        cx: &mut Context<'_>,
    ) -> Poll<Rejection> {
        let mut this = self.project();
        let limits = this.limits;
        if limits.idle.is_none() && this.timer.is_none() {
            let Some(deadline) = limits.deadline else {
                return Poll::Pending;
            };
            if let Some(promised) = promised.filter(|at| *at <= deadline) {
                CallContext::promise_wake(promised);
                return Poll::Pending;
            }
        }
        loop {
            let now = clock::now();
            if let Some(idle) = limits.idle {
                this.idle_until
                    .get_or_insert_with(|| Deadline::after(now, idle));
            }
            if let Some(rejection) = limits.reached(*this.idle_until, now) {
                return Poll::Ready(rejection);
            }
            let due = [*this.idle_until, limits.deadline].into_iter().flatten();
            let Some(due) = due.min() else {
                return Poll::Pending;
            };
            if poll_timer(this.timer.as_mut(), due.instant(), cx).is_pending() {
                CallContext::promise_wake(due);
                return Poll::Pending;
            }
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Bounds {
    fn drop(self: Pin<&mut Self>) {
        if self.timer.is_some() {
            CallContext::break_promise();
        }
    }
}

/// Ready when `due` may have been reached.
fn poll_timer(mut timer: Pin<&mut Option<Sleep>>, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
    if timer.is_none() {
        timer.set(Some(tokio::time::sleep_until(due)));
    }
    let Some(mut timer) = timer.as_pin_mut() else {
        return Poll::Pending; // not reached: it was made above
    };
    // No limit moves nearer, so one that fires too early is set again then: cheaper than setting it at every frame.
    if timer.is_elapsed() {
        timer.as_mut().reset(due);
    }
    timer.poll(cx)
}
