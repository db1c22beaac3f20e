//! Timers that are made when something is pending.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use mamparo_core::Deadline;
use pin_project::pin_project;
use tokio::task::coop;
use tokio::time::Sleep;

/// A timer that is made when it is first waited for.
pub(crate) trait Timer: Default {
    /// Tells whether it has been made.
    fn is_made(&self) -> bool;

    /// Waits until that instant.
    fn poll_until(self: Pin<&mut Self>, until: Deadline, cx: &mut Context<'_>) -> Poll<()>;
}

/// A timer that most calls need.
#[pin_project]
#[derive(Debug, Default)]
pub(crate) struct Usual(#[pin] Option<Sleep>);

/// A timer that few calls need: it takes no place until then.
#[derive(Debug, Default)]
pub(crate) struct Rare(Option<Pin<Box<Sleep>>>);

impl Timer for Usual {
    #[inline]
    fn is_made(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    fn poll_until(self: Pin<&mut Self>, until: Deadline, cx: &mut Context<'_>) -> Poll<()> {
        let mut sleep = self.project().0;
        if sleep.is_none() {
            sleep.set(Some(tokio::time::sleep_until(until.instant())));
        }
        sleep
            .as_pin_mut()
            .map_or(Poll::Pending, |sleep| poll(sleep, cx))
    }
}

impl Timer for Rare {
    #[inline]
    fn is_made(&self) -> bool {
        self.0.is_some()
    }

    fn poll_until(mut self: Pin<&mut Self>, until: Deadline, cx: &mut Context<'_>) -> Poll<()> {
        let sleep =
            (self.0).get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until.instant())));
        poll(sleep.as_mut(), cx)
    }
}

/// Polls a timer that has to fire.
///
/// A task that has used up its budget is told that no timer is due: a busy one would then never be cut.
#[inline]
pub(crate) fn poll(sleep: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<()> {
    pin!(coop::unconstrained(sleep)).poll(cx)
}
