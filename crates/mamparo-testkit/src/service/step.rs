//! One step of a script.

use crate::BoxError;
use std::future::pending;
use std::time::Duration;

/// What a scripted service does with one call.
///
/// ```
/// use mamparo_testkit::service::Step;
/// use std::time::Duration;
/// let slow = Step::answer(200).after(Duration::from_millis(50));
/// # let _: Step<i32> = slow;
/// ```
#[derive(Debug)]
pub struct Step<Res> {
    delay: Duration,
    end: End<Res>,
}

#[derive(Debug)]
enum End<Res> {
    Answer(Res),
    Error(BoxError),
    Hang,
    Panic,
}

impl<Res> Step<Res> {
    /// Answers with this response.
    #[must_use]
    pub fn answer(response: Res) -> Self {
        Self::at_once(End::Answer(response))
    }

    /// Fails with this error: a text, or an error value that the test looks for later.
    #[must_use]
    pub fn error(error: impl Into<BoxError>) -> Self {
        Self::at_once(End::Error(error.into()))
    }

    /// Never ends; the future stays pending until it is dropped.
    #[must_use]
    pub fn hang() -> Self {
        Self::at_once(End::Hang)
    }

    /// Panics when the future is polled.
    #[must_use]
    pub fn panic() -> Self {
        Self::at_once(End::Panic)
    }

    /// Waits this long, in tokio's time, before the step's end.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    fn at_once(end: End<Res>) -> Self {
        Self {
            delay: Duration::ZERO,
            end,
        }
    }

    /// Plays the step; `ended` is told just before it ends in any way of its own.
    pub(super) async fn play(self, ended: impl FnOnce()) -> Result<Res, BoxError> {
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        if matches!(self.end, End::Hang) {
            pending::<()>().await;
        }
        ended();
        match self.end {
            End::Answer(response) => Ok(response),
            End::Error(error) => Err(error),
            End::Hang | End::Panic => panic!("the script said to panic here"),
        }
    }
}
