//! Sends requests, and handles their answers.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use mamparo_core::{BoxError, Rejection, RetryError};
use tower_service::Service;

use crate::backend::{BoxFuture, Delivery, Message, Request};
use crate::fail_point::FailPoint;
use crate::handler::{Handled, Runner, Settlement};
use crate::machine::{
    Alert, AlertKind, Answer, End, Input, Note, Outcome, Progress, Record, State,
};

/// A request waits so long for an open breaker; then in its schedule, where no answer of it is missed.
const LONGEST_OPEN: Duration = Duration::from_secs(300);

/// Sends requests through a service, and handles the answers.
///
/// An answer is handled in the transaction that acknowledges its request, where the backend can: whoever dies in between sends the
/// request again, under the same key.
#[derive(Clone, Debug)]
pub struct RequestHandler<S> {
    runner: Runner,
    sender: S,
}

impl<S> RequestHandler<S> {
    /// Sends them through this service.
    #[must_use]
    pub const fn new(runner: Runner, sender: S) -> Self {
        Self { runner, sender }
    }
}

impl<S> Service<Delivery> for RequestHandler<S>
where
    S: Service<Request, Response = Option<Answer>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
{
    type Response = Handled;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Handled, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let Self { runner, sender } = self.clone();
        Box::pin(async move {
            let Delivery {
                message,
                since,
                receipt,
                ..
            } = delivery;
            let Message::Request(request) = message else {
                return Ok(Handled::MISPLACED);
            };
            let handled = match runner.load(&request.id).await? {
                // Its transaction went on without it: it was resolved, moved, or answered by another delivery.
                Some(record) if !is_wanted(&record.progress, &request) => {
                    tell_again(&runner, &record, &request);
                    handled(Note::Obsolete)
                }
                Some(record) => match send(sender, &request, runner.now().since(since)).await? {
                    None => handled(Note::Applied),
                    // What it was before: whoever changed it meanwhile makes the write miss, and it is decided again.
                    Some(answer) => {
                        let input = Input::Answer(answer);
                        runner
                            .handle_loaded(record, input, Some(receipt.clone()))
                            .await?
                    }
                },
                None => Handled {
                    note: Note::Unknown,
                    settlement: Settlement::Bury,
                },
            };
            runner.heard(receipt.queue, handled, since);
            Ok(handled)
        })
    }
}

const fn handled(note: Note) -> Handled {
    Handled {
        note,
        settlement: Settlement::Acknowledge,
    }
}

/// Whoever wrote the end that this request led to may have died before it told anyone.
fn tell_again(runner: &Runner, record: &Record, request: &Request) {
    let told = [End::Exhausted, End::Declined, End::OutcomeUnknown];
    let end = record.progress.end.filter(|end| told.contains(end));
    if let Some(end) = end.filter(|_| record.progress.attempt_current == request.attempt) {
        let alert = Alert::about(request.id.clone(), AlertKind::Failed(end));
        runner.listener().alert(&alert);
    }
}

fn is_wanted(progress: &Progress, request: &Request) -> bool {
    matches!(progress.state, State::InFlight | State::Sending)
        && progress.attempt_current == request.attempt
        && progress.schedule_seq <= request.seq
}

/// Sends it. Whatever fails is an answer too, unless the request was not sent and may be a little later.
///
/// It is `waited` for that long already.
async fn send<S>(
    mut sender: S,
    request: &Request,
    waited: Duration,
) -> Result<Option<Answer>, BoxError>
where
    S: Service<Request, Response = Option<Answer>>,
    S::Error: Into<BoxError>,
{
    FailPoint::Sending.reach();
    let sent = async {
        poll_fn(|cx| sender.poll_ready(cx)).await?;
        sender.call(request.clone()).await
    };
    let sent = sent.await.map_err(Into::into);
    FailPoint::Answered.reach();
    match sent {
        Ok(answer) => Ok(answer),
        Err(error) if is_early(&error, waited) => Err(error),
        Err(error) => {
            let technical = request.answer(Outcome::Technical);
            Ok(Some(technical.with_reason(said(&*error).as_str())))
        }
    }
}

/// Tells whether our own side has kept it back, and lets it pass later: nothing was sent, so nothing has failed.
///
/// A breaker that does not say when, as one that is forced open, or that is open for long, may stay as it is: what it refuses waits as
/// after a failure.
fn is_early(error: &BoxError, waited: Duration) -> bool {
    // Kept back was a resend.
    if RetryError::of(&**error).is_some_and(|error| error.ending().attempts() > 0) {
        return false;
    }
    Rejection::of(&**error).is_some_and(|rejection| {
        let full = rejection.is_rate_limited()
            || rejection.is_bulkhead_full()
            || rejection.is_overloaded();
        let soon = rejection.retry_after().is_some() && waited < LONGEST_OPEN;
        let open = rejection.is_breaker_open() && soon;
        (full || open) && !rejection.sent()
    })
}

/// An error and its causes, in one line.
pub(crate) fn said(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
