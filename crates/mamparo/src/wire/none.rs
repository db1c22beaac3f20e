//! Services whose requests and answers have no place for a deadline.

use std::time::Duration;

use super::{BodyLimits, BoundsAnswer, CarriesDeadline};
use crate::wire::codec::Read;

/// A protocol without a place for a deadline: any tower service.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWire;

impl<Req> CarriesDeadline<Req> for NoWire {
    #[inline]
    fn read<'a>(&'a self, _: &Req) -> Read<'a> {
        Read::default()
    }

    #[inline]
    fn strip(&self, _: &mut Req) {}

    #[inline]
    fn write(&self, _: &mut Req, _: Duration) {}
}

impl<Res> BoundsAnswer<Res> for NoWire {
    type Bounded = Res;

    #[inline]
    fn bound(&self, answer: Res, _: impl FnOnce() -> BodyLimits) -> Res {
        answer
    }
}
