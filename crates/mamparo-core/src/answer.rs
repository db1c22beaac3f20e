//! What the owner of resends does with an answer that is given up, or returned marked.

use http::Response;

use crate::classify::Refined;
use crate::http::Http;
use crate::{Ending, Plain, ResponseHead};

/// What the owner of an operation's resends does with an answer of its protocol.
pub trait Answer<Res>: Send + Sync + 'static {
    /// Marks an answer with how its operation ended, where the protocol has a place for it.
    fn mark(&self, answer: &mut Res, ending: Ending);

    /// Drops an answer that gives way to a resend, and keeps its head.
    fn give_up(&self, answer: Res) -> Option<ResponseHead>;
}

impl<Res> Answer<Res> for Plain {
    fn mark(&self, _: &mut Res, _: Ending) {}

    fn give_up(&self, _: Res) -> Option<ResponseHead> {
        None
    }
}

impl<B> Answer<Response<B>> for Http {
    fn mark(&self, answer: &mut Response<B>, ending: Ending) {
        answer.extensions_mut().insert(ending);
    }

    fn give_up(&self, answer: Response<B>) -> Option<ResponseHead> {
        let (head, _) = answer.into_parts();
        Some(ResponseHead::new(head.status, head.headers))
    }
}

impl<Res, C, F> Answer<Res> for Refined<C, F>
where
    C: Answer<Res>,
    F: Send + Sync + 'static,
{
    fn mark(&self, answer: &mut Res, ending: Ending) {
        self.inner().mark(answer, ending);
    }

    fn give_up(&self, answer: Res) -> Option<ResponseHead> {
        self.inner().give_up(answer)
    }
}
