//! Requests of any service: made again by a clone.

use mamparo_core::classify::Refined;
use mamparo_core::{NotResent, Plain};

use super::{Replay, Safety};

impl<Req: Clone> Replay<Req> for Plain {
    type Wire = Req;
    type Held = Req;

    #[inline(always)]
    fn split(&self, request: Req, keep: Option<usize>) -> (Req, Option<Req>) {
        match keep {
            Some(_) => {
                let held = request.clone();
                (request, Some(held))
            }
            None => (request, None),
        }
    }

    fn again(&self, held: Req, more: bool) -> Result<(Req, Option<Req>), NotResent> {
        Ok(if more {
            (held.clone(), Some(held))
        } else {
            (held, None)
        })
    }

    fn safety(&self, _: &Req) -> Safety {
        if self.is_idempotent() {
            Safety::IDEMPOTENT
        } else {
            Safety::UNSAFE
        }
    }

    fn number(&self, _: &mut Req, _: u32) {}
}

impl<Req, C, F> Replay<Req> for Refined<C, F>
where
    C: Replay<Req>,
    F: Send + Sync + 'static,
{
    type Wire = C::Wire;
    type Held = C::Held;

    #[inline(always)]
    fn split(&self, request: Req, keep: Option<usize>) -> (C::Wire, Option<C::Held>) {
        self.inner().split(request, keep)
    }

    fn again(&self, held: C::Held, more: bool) -> Result<(C::Wire, Option<C::Held>), NotResent> {
        self.inner().again(held, more)
    }

    fn beside(&self, held: C::Held, more: bool) -> Result<(C::Wire, Option<C::Held>), NotResent> {
        self.inner().beside(held, more)
    }

    fn safety(&self, request: &Req) -> Safety {
        self.inner().safety(request)
    }

    fn method<'a>(&self, request: &'a Req) -> Option<&'a str> {
        self.inner().method(request)
    }

    fn is_transparent(&self) -> bool {
        self.inner().is_transparent()
    }

    fn number(&self, wire: &mut C::Wire, attempt: u32) {
        self.inner().number(wire, attempt);
    }
}
