//! What a request with a key is answered, before its handler runs and after.

use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::Response;
use http_body::Body;
use mamparo_core::{BoxError, KeyStep, Rejection};
use tokio::time::sleep;

use super::body::{IdempotencyBody, Read};
use super::config::{IdempotencyBuilder, OnStoreFailure};
use super::guard::Guard;
use super::layer::Shared;
use super::mark::Mark;
use super::run::Ran;
use super::state::{Decision, Refusal, committed, decide};
use super::tx::{IdempotencyTx, NotRun};
use super::{
    Answer, Begin, Fingerprint, IdempotencyStore, Kept, KeyId, Lease, StoreError, StoreErrorKind,
    Written, kept, problem,
};

/// The waits before the store is asked again to take an answer.
const COMPLETE_WAITS: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// How many times a lease is renewed in its time.
const RENEWALS: u32 = 3;

pub(super) type Reply<R> = Result<Response<IdempotencyBody<R>>, BoxError>;

/// How a request is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    First,
    /// An earlier run may have taken effect.
    Again,
    /// The store failed: nobody knows of its key.
    Unprotected,
}

/// What every answer to one request needs.
pub(super) struct Replying<St> {
    id: KeyId,
    is_grpc: bool,
    pub(super) shared: Arc<Shared<St>>,
}

impl<St: IdempotencyStore> Replying<St> {
    pub(super) const fn new(id: KeyId, is_grpc: bool, shared: Arc<Shared<St>>) -> Self {
        Self {
            id,
            is_grpc,
            shared,
        }
    }

    fn settings(&self) -> &IdempotencyBuilder {
        &self.shared.policy.settings
    }

    pub(super) fn tell(&self, step: KeyStep) {
        self.shared.tell(Some(self.id), step);
    }

    fn tell_why(&self, step: KeyStep, error: &StoreError) {
        self.shared.tell_why(Some(self.id), step, Some(error));
    }

    pub(super) fn refuse<R: Body>(&self, refusal: Refusal) -> Response<IdempotencyBody<R>> {
        self.tell(refusal.step());
        self.refused(refusal)
    }

    fn refused<R: Body>(&self, refusal: Refusal) -> Response<IdempotencyBody<R>> {
        let response = problem::write(self.settings(), refusal, self.is_grpc);
        response.map(|body| IdempotencyBody::whole(body, None))
    }

    pub(super) fn begin(&self, fingerprint: Fingerprint) -> Begin {
        let settings = self.settings();
        Begin::new(self.id, fingerprint, settings.lease, settings.retention)
            .on_expiry(settings.on_expiry)
    }

    /// Asks for the key: the request is run, or answered.
    pub(super) async fn ask<R: Body>(
        &self,
        begin: &Begin,
        guard: &mut Guard<St>,
    ) -> Result<Go, Response<IdempotencyBody<R>>> {
        let begun = self.shared.within(self.shared.store.begin(begin)).await;
        let decision = begun.and_then(|begun| decide(begun, &begin.fingerprint));
        match decision {
            Ok(Decision::Run { again: false }) => {
                self.tell(KeyStep::Started);
                Ok(Go::First)
            }
            Ok(Decision::Run { again: true }) => {
                self.tell(KeyStep::StartedAgain);
                Ok(Go::Again)
            }
            Ok(Decision::Replay(answer)) => {
                guard.settled();
                self.tell(KeyStep::Replayed);
                let mark = Mark::replayed(self.settings().retention);
                Err(give(*answer, mark).unwrap_or_else(|| self.refused(Refusal::NotKept)))
            }
            Ok(Decision::Refuse(refusal)) => {
                guard.settled();
                Err(self.refuse(refusal))
            }
            // It may have been started all the same: the guard sees to that.
            Err(error) if self.runs_unprotected(&error) => {
                self.tell_why(KeyStep::RunUnprotected, &error);
                Ok(Go::Unprotected)
            }
            Err(error) => {
                self.tell_why(KeyStep::StoreFailed, &error);
                Err(self.refused(Refusal::StoreFailed))
            }
        }
    }

    /// Only what can't be asked is passed over; an answer that is there and can't be read says that the request was run.
    fn runs_unprotected(&self, error: &StoreError) -> bool {
        let open = self.settings().on_store_failure == OnStoreFailure::RunUnprotected;
        let read = matches!(
            error.kind(),
            StoreErrorKind::Corrupt | StoreErrorKind::Incompatible
        );
        open && !read
    }

    /// Keeps the lease while the handler works.
    pub(super) async fn renewing<T>(&self, lease: Lease, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut renewals = pin!(self.renew_forever(lease));
        poll_fn(|cx| {
            // First, so that no timer is made for a handler that answers at once.
            if let Poll::Ready(ran) = work.as_mut().poll(cx) {
                return Poll::Ready(ran);
            }
            match renewals.as_mut().poll(cx) {
                Poll::Ready(never) => match never {},
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    async fn renew_forever(&self, lease: Lease) -> Infallible {
        let term = self.settings().lease;
        loop {
            sleep(term / RENEWALS).await;
            let renewed = self.shared.store.renew(lease, term);
            match self.shared.within(renewed).await {
                Ok(Written::Done) => {}
                // Taken over, or completed: the end will tell.
                Ok(_) => return pending().await,
                Err(error) => self.tell_why(KeyStep::NotRenewed, &error),
            }
        }
    }

    /// Stores the answer where it is one that is stored, and gives it to the caller.
    pub(super) async fn end<R: Body>(
        &self,
        ran: Result<Ran<R>, BoxError>,
        tx: &IdempotencyTx,
        go: Go,
        guard: &mut Guard<St>,
    ) -> Reply<R> {
        let response = match ran {
            Ok(ran) => Ok(self.answer(ran, tx, go).await),
            Err(error) => {
                match Rejection::of(&*error) {
                    Some(refused) if !refused.sent() => self.shared.release(tx.lease()).await,
                    _ => self.shared.abandon(tx.lease()).await,
                }
                Err(error)
            }
        };
        guard.settled();
        response
    }

    async fn answer<R: Body>(
        &self,
        ran: Ran<R>,
        tx: &IdempotencyTx,
        go: Go,
    ) -> Response<IdempotencyBody<R>> {
        if let Some(answer) = tx.take_written() {
            match self.committed(&answer).await {
                Ok(true) => return self.give_committed(answer, ran),
                Ok(false) => {}
                Err(error) => return self.give_unrecorded(ran, &error),
            }
        }
        let answer = ran.kept(&self.settings().kept, tx.request_fits());
        let not_run = ran.head.extensions.get::<NotRun>().is_some();
        if not_run || !kept::is_stored(self.settings().stored, &answer) {
            self.shared.release(tx.lease()).await;
            return ran.give(Mark::NOT_STORED);
        }
        match self.complete(tx.lease(), &answer).await {
            Ok(Written::Done | Written::Before) => {
                self.tell(match answer.body {
                    Kept::Body(_) => KeyStep::Completed,
                    _ => KeyStep::CompletedWithoutAnswer,
                });
                ran.give(self.mark(&answer))
            }
            // Nobody knew of its key in the first place.
            Ok(Written::Lost) if go == Go::Unprotected => ran.give(Mark::NOT_STORED),
            // Of a key there is one answer, and it is not this.
            Ok(Written::Lost) => self.refuse(Refusal::Lost),
            Err(error) => self.give_unrecorded(ran, &error),
        }
    }

    /// Tells whether the handler's transaction has brought this answer.
    async fn committed(&self, answer: &Answer) -> Result<bool, StoreError> {
        let found = self.shared.within(self.shared.store.find(self.id)).await?;
        Ok(committed(found.as_ref(), answer))
    }

    fn give_committed<R: Body>(&self, answer: Answer, ran: Ran<R>) -> Response<IdempotencyBody<R>> {
        self.tell(KeyStep::CompletedInTransaction);
        let mark = self.mark(&answer);
        give(answer, mark).unwrap_or_else(|| ran.give(mark))
    }

    /// The caller gets what was done: with an error in its place, it would have it done again.
    fn give_unrecorded<R: Body>(
        &self,
        ran: Ran<R>,
        error: &StoreError,
    ) -> Response<IdempotencyBody<R>> {
        self.tell_why(KeyStep::NotRecorded, error);
        ran.give(Mark::NOT_STORED)
    }

    /// Asks the store to take the answer, more than once if it fails: it would be lost else.
    async fn complete(&self, lease: Lease, answer: &Answer) -> Result<Written, StoreError> {
        let (sealed, retention) = (answer.seal(), self.settings().retention);
        let mut waits = COMPLETE_WAITS.iter();
        loop {
            let step = self.shared.store.complete(lease, &sealed, retention);
            match (self.shared.within(step).await, waits.next()) {
                (Err(_), Some(wait)) => sleep(*wait).await,
                (result, _) => return result,
            }
        }
    }

    fn mark(&self, answer: &Answer) -> Mark {
        let retention = self.settings().retention;
        match answer.body {
            Kept::Body(_) => Mark::stored(retention),
            _ => Mark::without_answer(retention),
        }
    }
}

impl<R: Body> Ran<R> {
    /// What is kept of the answer.
    fn kept(&self, names: &[http::HeaderName], request_fits: bool) -> Answer {
        let (body, trailers) = match &self.read {
            _ if !request_fits => (Kept::RequestTooLarge, None),
            Read::Whole { data, trailers } => (Kept::Body(data.clone()), trailers.as_ref()),
            Read::Larger(_) => (Kept::AnswerTooLarge, None),
            Read::Broken(_) => (Kept::Broken, None),
        };
        kept::answer(names, &self.head, body, trailers)
    }

    /// Gives the handler's own answer.
    fn give(self, mark: Mark) -> Response<IdempotencyBody<R>> {
        let mut head = self.head;
        mark.write(&mut head.headers);
        Response::from_parts(
            head,
            match self.read {
                Read::Whole { data, trailers } => IdempotencyBody::whole(data, trailers),
                Read::Larger(body) | Read::Broken(body) => body,
            },
        )
    }
}

/// Gives a stored answer; none where its body was not kept.
fn give<R: Body>(answer: Answer, mark: Mark) -> Option<Response<IdempotencyBody<R>>> {
    let Kept::Body(data) = answer.body else {
        return None;
    };
    let mut response = Response::new(IdempotencyBody::whole(data, answer.trailers));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    mark.write(response.headers_mut());
    Some(response)
}
