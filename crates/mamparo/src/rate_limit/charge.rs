//! Who pays for a request, and how much.

use std::fmt;
use std::hash::Hash;

use http::Request;
use mamparo_core::{CallContext, Tenant};

use crate::caller::{CallerKey, Who};

/// Says who pays for a request, and how much.
///
/// Called once a request, before anything is taken from any limit.
pub trait Charge<Req>: Clone + Send + Sync + 'static {
    /// What tells one payer from another. Only its hash is kept.
    type Key: Hash;

    /// Returns who pays; those without a key pay together, from a limit of their own.
    fn key(&self, request: &Req) -> Option<Self::Key>;

    /// Returns how much it costs: 1, unless told otherwise.
    fn cost(&self, request: &Req) -> u32 {
        let _ = request;
        1
    }
}

/// All requests pay from one limit, 1 each.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneLimit;

impl<Req> Charge<Req> for OneLimit {
    type Key = ();

    #[inline]
    fn key(&self, _: &Req) -> Option<()> {
        None
    }
}

/// Each tenant pays from a limit of its own; see [`CallContext::tenant`].
#[derive(Clone, Copy, Debug, Default)]
pub struct PerTenant;

impl<Req> Charge<Req> for PerTenant {
    type Key = Tenant;

    #[inline]
    fn key(&self, _: &Req) -> Option<Tenant> {
        CallContext::current().tenant()
    }
}

/// Each key of a request pays from a limit of its own.
#[derive(Clone, Copy)]
pub struct PerKey<F>(pub(super) F);

impl<F, K, Req> Charge<Req> for PerKey<F>
where
    F: Fn(&Req) -> Option<K> + Clone + Send + Sync + 'static,
    K: Hash,
{
    type Key = K;

    #[inline]
    fn key(&self, request: &Req) -> Option<K> {
        self.0(request)
    }
}

/// Each caller of a server pays from a limit of its own.
impl<B> Charge<Request<B>> for CallerKey {
    type Key = Who;

    #[inline]
    fn key(&self, request: &Request<B>) -> Option<Who> {
        self.of(request)
    }
}

/// Requests that don't all cost the same.
#[derive(Clone, Copy)]
pub struct Costed<C, F> {
    pub(super) charge: C,
    pub(super) cost: F,
}

impl<C, F, Req> Charge<Req> for Costed<C, F>
where
    C: Charge<Req>,
    F: Fn(&Req) -> u32 + Clone + Send + Sync + 'static,
{
    type Key = C::Key;

    #[inline]
    fn key(&self, request: &Req) -> Option<C::Key> {
        self.charge.key(request)
    }

    #[inline]
    fn cost(&self, request: &Req) -> u32 {
        (self.cost)(request)
    }
}

impl<F> fmt::Debug for PerKey<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PerKey")
    }
}

impl<C: fmt::Debug, F> fmt::Debug for Costed<C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Costed").field(&self.charge).finish()
    }
}
