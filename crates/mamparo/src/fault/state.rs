//! Which faults a call meets: pure, told the seed, the call's number and its request.

use std::time::Duration;

use fastrand::Rng;

use super::Protocol;
use super::config::{Effect, Fault, FaultPlan};

/// Odd and without a pattern, so that the seeds of one call and the next have nothing in common.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// What happens to one call.
pub(super) struct Draw<'a, M> {
    /// How late the answer is; nothing if no latency hit.
    pub(super) late: Duration,
    /// What happens besides.
    pub(super) outcome: Option<&'a Effect<M>>,
    /// The faults that hit, one bit each, by their place in the plan.
    hits: u32,
}

/// Draws the faults of a call. A fault's luck depends on the seed, the call's number and its place in the list, and not
/// on the request: predicates that pick more or fewer requests don't change what happens to the others.
pub(super) fn draw<'a, Req, P: Protocol>(
    plan: &'a FaultPlan<Req, P>,
    call: u64,
    request: &Req,
) -> Draw<'a, P::MadeUp> {
    let mut rng = Rng::with_seed(plan.seed() ^ call.wrapping_mul(SPREAD));
    let mut draw = Draw {
        late: Duration::ZERO,
        outcome: None,
        hits: 0,
    };
    for (place, fault) in plan.faults.iter().enumerate() {
        let (luck, share) = (rng.f64(), rng.f64());
        if luck < fault.rate && fault.picks(request) && draw.meet(&fault.effect, share) {
            draw.hits |= 1 << place;
        }
    }
    draw
}

impl<Req, P: Protocol> Fault<Req, P> {
    fn picks(&self, request: &Req) -> bool {
        self.when.as_ref().is_none_or(|picks| picks(request))
    }
}

impl<'a, M> Draw<'a, M> {
    /// Takes a fault that hit; tells whether it happens.
    fn meet(&mut self, effect: &'a Effect<M>, share: f64) -> bool {
        if let Effect::Latency { least, most } = effect {
            let late = *least + most.saturating_sub(*least).mul_f64(share);
            self.late = self.late.saturating_add(late);
            return true;
        }
        let first = self.outcome.is_none();
        self.outcome.get_or_insert(effect);
        first
    }

    /// The faults that happen, by their place in the plan.
    pub(super) fn hits(&self) -> impl Iterator<Item = usize> + use<M> {
        let hits = self.hits;
        (0..u32::BITS as usize).filter(move |place| hits >> place & 1 == 1)
    }
}
