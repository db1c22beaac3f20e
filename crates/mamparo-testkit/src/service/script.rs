//! The service that answers by script.

use super::step::Step;
use super::tally::Tally;
use crate::BoxError;
use crate::sync::lock;
use mamparo_core::clock::Instant;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tower_service::Service;

/// The future of one scripted call.
pub type ScriptFuture<Res> = Pin<Box<dyn Future<Output = Result<Res, BoxError>> + Send>>;

/// A service that answers call after call by a list of steps, then by a default.
///
/// Clones share the list and the counts. It is always ready; stand it behind a [`Door`](super::Door) or
/// a [`Strict`](super::Strict) when readiness matters. The request lives as long as its call, as it would
/// in a transport; what is kept of it is its `Note`, by default a copy.
///
/// ```
/// use mamparo_testkit::service::{Script, Step};
/// use tower_service::Service;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let mut script = Script::new([Step::answer("first")]).otherwise(|| Step::error("over"));
/// assert_eq!(script.call(1).await.unwrap(), "first");
/// assert!(script.call(2).await.is_err());
/// assert_eq!((script.started(), script.running(), script.requests()), (2, 0, vec![1, 2]));
/// # }
/// ```
pub struct Script<Req, Res, Note = Req> {
    shared: Arc<Shared<Req, Res, Note>>,
    tally: Tally,
}

struct Shared<Req, Res, Note> {
    steps: Mutex<VecDeque<Step<Res>>>,
    otherwise: Mutex<Box<dyn Fn() -> Step<Res> + Send>>,
    note: Box<dyn Fn(&Req) -> Note + Send + Sync>,
    notes: Mutex<Vec<Note>>,
}

fn over<Res>() -> Step<Res> {
    panic!("the script has no step left and no default")
}

impl<Req: Clone + 'static, Res: 'static> Script<Req, Res> {
    /// Makes a script of these steps, which keeps a copy of every request.
    pub fn new(steps: impl IntoIterator<Item = Step<Res>>) -> Self {
        Self::noting(Req::clone, steps)
    }
}

impl<Req, Res: 'static, Note> Script<Req, Res, Note> {
    /// Makes a script of these steps, which keeps of every request what `note` takes from it.
    pub fn noting(
        note: impl Fn(&Req) -> Note + Send + Sync + 'static,
        steps: impl IntoIterator<Item = Step<Res>>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                steps: Mutex::new(steps.into_iter().collect()),
                otherwise: Mutex::new(Box::new(over)),
                note: Box::new(note),
                notes: Mutex::default(),
            }),
            tally: Tally::default(),
        }
    }

    /// Says what to do when the list is over; without it, one more call panics.
    #[must_use]
    pub fn otherwise(self, step: impl Fn() -> Step<Res> + Send + 'static) -> Self {
        *lock(&self.shared.otherwise) = Box::new(step);
        self
    }

    /// Appends a step to the list, also while calls run.
    pub fn push(&self, step: Step<Res>) {
        lock(&self.shared.steps).push_back(step);
    }

    /// Forgets the steps that are left; from now on the default answers.
    pub fn clear(&self) {
        lock(&self.shared.steps).clear();
    }

    fn next(&self) -> Step<Res> {
        let listed = lock(&self.shared.steps).pop_front();
        listed.unwrap_or_else(|| lock(&self.shared.otherwise)())
    }
}

impl<Req, Res, Note> Script<Req, Res, Note> {
    /// Returns what was noted of each request, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Note>
    where
        Note: Clone,
    {
        lock(&self.shared.notes).clone()
    }

    /// Returns how many calls were made.
    #[must_use]
    pub fn started(&self) -> usize {
        self.tally.read(|counts| counts.starts.len())
    }

    /// Returns when each call was made.
    #[must_use]
    pub fn starts(&self) -> Vec<Instant> {
        self.tally.read(|counts| counts.starts.clone())
    }

    /// Returns how many calls run now: made, neither ended nor dropped.
    #[must_use]
    pub fn running(&self) -> usize {
        self.tally.read(|counts| counts.running)
    }

    /// Returns the most calls that ever ran at once.
    #[must_use]
    pub fn max_running(&self) -> usize {
        self.tally.read(|counts| counts.max_running)
    }

    /// Returns how many calls came to their own end: an answer, an error or a panic.
    #[must_use]
    pub fn finished(&self) -> usize {
        self.tally.read(|counts| counts.finished)
    }

    /// Returns how many calls were dropped before their end.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.tally.read(|counts| counts.dropped)
    }
}

impl<Req, Res, Note> Service<Req> for Script<Req, Res, Note>
where
    Req: Send + 'static,
    Res: Send + 'static,
{
    type Response = Res;
    type Error = BoxError;
    type Future = ScriptFuture<Res>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let running = self.tally.start();
        lock(&self.shared.notes).push((self.shared.note)(&request));
        let step = self.next();
        Box::pin(async move {
            let _request = request;
            step.play(|| running.finished()).await
        })
    }
}

impl<Req, Res, Note> Clone for Script<Req, Res, Note> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            tally: self.tally.clone(),
        }
    }
}

impl<Req, Res, Note> Debug for Script<Req, Res, Note> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}
