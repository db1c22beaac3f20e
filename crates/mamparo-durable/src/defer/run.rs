//! One request, from its body's first byte until it is answered or stored.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use mamparo_core::http::hint;
use mamparo_core::{BoxError, CallContext, Gate, Rejection, clock};
use tokio::time::timeout;
use tower_service::Service;

use super::body::{Read, read};
use super::keep::Kept;
use super::layer::Shared;
use super::{DeferBody, DeferError, Deferrable, Deferred, Undeferred};
use crate::backend::{BackendError, Begun, Trouble};
use crate::engine::{Engine, said};
use crate::machine::{Answer, Outcome, Utc};
use crate::web::MAX_ANSWER_BYTES;

/// How long a request's body may take to be read, before anything is sent; no longer than the deadline around.
pub const READ_WITHIN: Duration = Duration::from_secs(10);

/// How long the store may take; no longer than the deadline around, but for a second for an answer that came with its end.
pub const STORE_WITHIN: Duration = Duration::from_secs(15);

/// What has to be written down often failed for want of time.
const STORE_AT_LEAST: Duration = Duration::from_secs(1);

type Answered<D> = Deferrable<Response<DeferBody<D>>>;

/// Sends a request that may be deferred.
pub(super) async fn run<S, B, D>(
    mut gate: Gate<S>,
    request: Request<B>,
    shared: Arc<Shared>,
) -> Result<Answered<D>, BoxError>
where
    S: Service<Request<B>, Response = Response<D>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + From<Bytes>,
    B::Error: Into<BoxError>,
    D: Body<Data = Bytes>,
{
    let (mut head, body) = request.into_parts();
    let body = read_request(body, shared.settings.max_body).await?;
    let kept = shared.keep(&mut head, body.clone())?;
    if let Some(known) = shared.known(&kept).await? {
        return Ok(Deferrable::Deferred(known));
    }
    let sent = gate.call(Request::from_parts(head, B::from(body))).await;
    match sent.map_err(Into::into) {
        Ok(response) => shared.answered(kept, response).await,
        Err(error) => shared.failed(kept, error).await.map(Deferrable::Deferred),
    }
}

/// What the deadline around leaves of a time.
fn within(time: Duration) -> Duration {
    let remaining = CallContext::current().attempt_remaining(clock::now());
    remaining.map_or(time, |remaining| remaining.min(time))
}

/// Reads the body of a request, to be able to send it again.
async fn read_request<B>(body: B, bound: usize) -> Result<Bytes, DeferError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let broken = |why: &str| {
        let says = format!("the request can't be deferred, and is not sent: its body {why}");
        DeferError::new(Undeferred::Unreplayable, says)
    };
    let collected = timeout(within(READ_WITHIN), Limited::new(body, bound).collect()).await;
    match collected {
        Ok(Ok(whole)) if whole.trailers().is_some() => {
            Err(broken("has trailers, which can't be kept"))
        }
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let says = format!(
                "the request can't be deferred, and is not sent: its body has more than {bound} bytes"
            );
            Err(DeferError::new(Undeferred::TooLarge, says))
        }
        Ok(Err(error)) => Err(broken("broke off").with_source(error)),
        Err(_) => Err(broken("took too long to be read")),
    }
}

impl Shared {
    /// Finds the transaction of a request that is repeated: its next attempt is the engine's, and this one would be one more.
    async fn known(&self, kept: &Kept) -> Result<Option<Deferred>, DeferError> {
        if !kept.named {
            return Ok(None);
        }
        let found = async {
            let Some(record) = self.engine.load(&kept.id).await? else {
                return Ok(None);
            };
            Ok(Some((record, is_same(&self.engine, kept).await?)))
        };
        match timeout(within(STORE_WITHIN), found).await {
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some((record, true)))) => Ok(Some(Deferred::of(record))),
            Ok(Ok(Some((_, false)))) => Err(DeferError::other_request(&kept.id, "sent")),
            Ok(Err(error)) => Err(DeferError::not_read(error)),
            Err(_) => {
                let slow = "the store does not answer in time";
                Err(DeferError::not_read(BackendError::new(
                    Trouble::Unavailable,
                    slow,
                )))
            }
        }
    }

    async fn answered<D>(&self, kept: Kept, response: Response<D>) -> Result<Answered<D>, BoxError>
    where
        D: Body<Data = Bytes>,
    {
        let (head, body) = response.into_parts();
        let judge = &self.settings.judge;
        let later = self.settings.later;
        let by_status = judge.judge(head.status, b"");
        if !judge.reads_bodies() && !later.answer(by_status.0, kept.repeatable) {
            let answer = Response::from_parts(head, DeferBody::untouched(body));
            return Ok(Deferrable::Answered(answer));
        }
        let Read { data, broken, body } = read(body, MAX_ANSWER_BYTES).await;
        let (outcome, reason) = match by_status {
            // Nobody knows what the rest would have said.
            (Outcome::Success, _) if broken => {
                (Outcome::Technical, Some("the answer broke off".into()))
            }
            by_status if broken => by_status,
            _ => judge.judge(head.status, &data),
        };
        if !later.answer(outcome, kept.repeatable) {
            return Ok(Deferrable::Answered(Response::from_parts(head, body)));
        }
        let mut answer = Answer::new(1, 0, outcome);
        answer.reason = reason;
        answer.not_before = self.asked_for(&head.headers);
        match self.store(kept, answer).await {
            Ok(Some(deferred)) => Ok(Deferrable::Deferred(deferred)),
            // It was its last attempt, and this is its last answer.
            Ok(None) => Ok(Deferrable::Answered(Response::from_parts(head, body))),
            Err(error) => Err(error.with_answer(Response::from_parts(head, data)).into()),
        }
    }

    async fn failed(&self, kept: Kept, error: BoxError) -> Result<Deferred, BoxError> {
        if !self.settings.later.error(&error, kept.repeatable) {
            return Err(error);
        }
        let rejection = Rejection::of(&*error);
        let reason = match rejection {
            Some(rejection) => rejection.reason().as_str().to_owned(),
            None => said(&*error),
        };
        let mut answer = Answer::new(1, 0, Outcome::Technical).with_reason(reason.as_str());
        let wait = rejection.and_then(Rejection::retry_after);
        answer.not_before = wait.map(|wait| self.engine.runner().now().plus(wait));
        match self.store(kept, answer).await {
            Ok(Some(deferred)) => Ok(deferred),
            Ok(None) => Err(error),
            Err(unstored) => Err(unstored.with_source(error).into()),
        }
    }

    /// Until when the dependency asks not to be sent the next attempt.
    fn asked_for(&self, headers: &HeaderMap) -> Option<Utc> {
        let runner = self.engine.runner();
        let wait = hint::retry_after(headers, &**runner.clock())?;
        Some(runner.now().plus(wait))
    }

    /// Stores a request with what was answered; `None` if that was its end.
    ///
    /// In a task, so that what the dependency said is written down although the caller goes away.
    async fn store(&self, kept: Kept, answer: Answer) -> Result<Option<Deferred>, DeferError> {
        let (id, engine) = (kept.id.clone(), self.engine.clone());
        let storing = tokio::spawn(begin(engine, kept, answer));
        let stored = match timeout(within(STORE_WITHIN).max(STORE_AT_LEAST), storing).await {
            Ok(Ok(stored)) => stored,
            Ok(Err(died)) => {
                let says = format!("the request could not be stored for later: {died}");
                Err(DeferError::new(Undeferred::NotStored, says))
            }
            Err(_) => {
                let says = "the request was not stored for later in time, and may be yet: repeat it under the same id";
                Err(DeferError::new(Undeferred::StoreTooSlow, says))
            }
        };
        stored.map_err(|error| error.of_transaction(id))
    }
}

/// Tells whether the request that is stored under an id is this one.
async fn is_same(engine: &Engine, kept: &Kept) -> Result<bool, BackendError> {
    let stored = engine.backend().store().request(kept.id.clone()).await?;
    Ok(stored.is_some_and(|stored| kept.is(&stored)))
}

async fn begin(engine: Engine, kept: Kept, answer: Answer) -> Result<Option<Deferred>, DeferError> {
    let (id, reason) = (kept.id.clone(), answer.reason.clone());
    let begun = engine.begin_new(kept.transaction(answer.clone())).await;
    let begun = begun.map_err(DeferError::not_stored)?;
    if begun != Begun::New {
        // Begun since it was looked for. What another request was answered says nothing of this one.
        let same = is_same(&engine, &kept).await;
        if !same.map_err(DeferError::not_stored)? {
            return Err(DeferError::other_request(&id, "stored for later"));
        }
        let told = engine.answer(&id, answer).await;
        told.map_err(DeferError::not_stored)?;
    }
    Ok(match engine.load(&id).await {
        Ok(Some(record)) => {
            let over = begun == Begun::New && record.progress.state.is_terminal();
            (!over).then(|| Deferred::of(record))
        }
        // It is stored all the same.
        Ok(None) | Err(_) => Some(Deferred::unread(id, reason)),
    })
}
