//! A response body that keeps a guard until the answer is over.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

use crate::classify::{End, Ends, Settle};
use crate::{BoxError, CallContext, Deadline, Kind, Resend, Verdict, clock};

/// A response body with a guard inside, which is settled when the body ends, breaks or is dropped.
#[pin_project]
pub struct GuardedBody<B, G: Settle, E: Ends> {
    #[pin]
    body: B,
    // After the body: whatever it holds is given back before the guard hears that all is over.
    held: Held<G, E>,
}

struct Held<G: Settle, E: Ends> {
    open: Option<Open<G, E>>,
}

/// What is kept while the verdict is open.
struct Open<G, E> {
    guard: G,
    ends: E,
    head: Verdict,
    deadline: Option<Deadline>,
}

impl<B, G: Settle, E: Ends> GuardedBody<B, G, E> {
    /// Ties a guard to a body whose head's verdict is still open.
    pub fn open(body: B, guard: G, head: Verdict, ends: E) -> Self {
        let open = Some(Open {
            guard,
            ends,
            head,
            deadline: CallContext::current_deadline(),
        });
        Self {
            body,
            held: Held { open },
        }
    }

    /// Wraps a body whose verdict is already final.
    pub const fn settled(body: B) -> Self {
        Self {
            body,
            held: Held { open: None },
        }
    }
}

/// A settled one: what a generated client of tonic's makes in the place of an answer.
impl<B: Default, G: Settle, E: Ends> Default for GuardedBody<B, G, E> {
    fn default() -> Self {
        Self::settled(B::default())
    }
}

impl<G: Settle, E: Ends> Held<G, E> {
    fn settle(&mut self, end: End<'_>) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let late = |deadline: Deadline| deadline.has_passed(clock::now());
        let cut = || CallContext::is_cutting() || open.deadline.is_some_and(late);
        let cut = matches!(end, End::Dropped) && cut();
        open.guard.settle(if cut {
            Verdict::failure(Kind::Timeout, Resend::Never)
        } else {
            open.ends.end(open.head, end)
        });
    }
}

impl<G: Settle, E: Ends> Drop for Held<G, E> {
    fn drop(&mut self) {
        self.settle(End::Dropped);
    }
}

impl<B, G, E> Body for GuardedBody<B, G, E>
where
    B: Body,
    B::Error: Into<BoxError>,
    G: Settle,
    E: Ends,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let mut poll = || this.body.as_mut().poll_frame(cx);
        let frame = match &mut this.held.open {
            Some(open) => open.guard.around(poll),
            None => poll(),
        };
        let frame = ready!(frame).map(|frame| frame.map_err(Into::into));
        if this.held.open.is_some() {
            let end = match &frame {
                None => Some(End::Trailers(None)),
                Some(Err(error)) => Some(End::Error(error)),
                Some(Ok(frame)) if frame.is_trailers() => Some(End::Trailers(frame.trailers_ref())),
                Some(Ok(_)) => this.body.is_end_stream().then_some(End::Trailers(None)),
            };
            if let Some(end) = end {
                this.held.settle(end);
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: fmt::Debug, G: Settle, E: Ends> fmt::Debug for GuardedBody<B, G, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedBody")
            .field("body", &self.body)
            .field("open", &self.held.open.is_some())
            .finish_non_exhaustive()
    }
}
