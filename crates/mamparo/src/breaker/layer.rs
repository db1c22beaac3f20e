//! Settings and shared state of a breaker.

use std::sync::Arc;

use mamparo_core::http::Http;
use mamparo_core::shard::Spread;
use mamparo_core::{Dependency, Observer};
use tower_layer::Layer;

use super::circuits::Circuits;
use super::keying::{By, ByAuthority, One};
use super::{Breaker, BreakerHandle, BreakerPolicy};

/// Stops calling a dependency that fails; see the [module](super).
///
/// `P` is the protocol: [`Http`], [`Plain`](mamparo_core::Plain), or one of your own. `K` says which breaker a request
/// belongs to: [`One`] for all of them, or [`By`] a key of the request. Clones share the breakers.
#[derive(Clone, Debug)]
pub struct BreakerLayer<P, K = One> {
    shared: Spread<Shared<P, K>>,
}

/// What all services of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<P, K> {
    pub(super) protocol: P,
    pub(super) keying: K,
    pub(super) policy: Arc<BreakerPolicy>,
    pub(super) circuits: Circuits,
    pub(super) dependency: Dependency,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// Whether every call passes unjudged.
    pub(super) off: bool,
}

impl BreakerLayer<Http> {
    /// Judges HTTP requests by the default table of statuses.
    #[must_use]
    pub fn http(policy: BreakerPolicy) -> Self {
        Self::new(policy, Http::default())
    }
}

impl<P: Clone> BreakerLayer<P> {
    /// Judges requests of a protocol, with one breaker for all of them.
    #[must_use]
    pub fn new(policy: BreakerPolicy, protocol: P) -> Self {
        Self::with(policy, false, protocol, One)
    }

    /// The same breaker by other settings: its state stays, for all that share it.
    pub(crate) fn with_policy(mut self, policy: &BreakerPolicy) -> Self {
        let policy = Arc::new(policy.clone());
        self.shared.circuits.whole().renew(Arc::clone(&policy));
        self.shared.change(|shared| {
            shared.off = policy.is_off();
            shared.policy = policy;
        });
        self
    }
}

impl<P: Clone, F: Clone> BreakerLayer<P, By<F>> {
    /// Judges requests of a protocol, with a breaker for each key that a function finds in them.
    ///
    /// As many keys as the policy's `max_keys` have a breaker of their own. Then a new one takes the place of the least
    /// recently used, or rather of one that is closed among the eight that were used the longest ago. Requests without
    /// a key have one in common. No request passes without a breaker, and what becomes of each is a
    /// [`Transition`](mamparo_core::breaker::Transition).
    ///
    /// ```
    /// use mamparo::breaker::{BreakerLayer, BreakerPolicy};
    /// use mamparo_core::Plain;
    ///
    /// let shard = |request: &(u32, String)| Some(format!("shard-{}", request.0 % 8));
    /// let layer = BreakerLayer::keyed(BreakerPolicy::default(), Plain::idempotent(), shard);
    /// # let _ = layer;
    /// ```
    #[must_use]
    pub fn keyed<Req, Key>(policy: BreakerPolicy, protocol: P, key: F) -> Self
    where
        F: Fn(&Req) -> Option<Key>,
        Key: AsRef<str>,
    {
        Self::with(policy, true, protocol, By(key))
    }
}

impl BreakerLayer<Http, ByAuthority> {
    /// Judges HTTP requests, with a breaker for each host and port; see [`BreakerLayer::keyed`].
    ///
    /// As requests spell them: a host with its scheme's own port and one without a port are two.
    #[must_use]
    pub fn by_authority(policy: BreakerPolicy) -> Self {
        Self::with(policy, true, Http::default(), ByAuthority)
    }
}

impl<P: Clone, K: Clone> BreakerLayer<P, K> {
    fn with(policy: BreakerPolicy, keyed: bool, protocol: P, keying: K) -> Self {
        let policy = Arc::new(policy);
        Self {
            shared: Spread::new(Shared {
                off: policy.is_off(),
                protocol,
                keying,
                circuits: Circuits::new(&policy, keyed),
                policy,
                dependency: Dependency::UNNAMED,
                observer: None,
            }),
        }
    }

    /// Names the dependency; needed where no layer around this one does.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Dependency>) -> Self {
        let dependency = dependency.into();
        self.shared.circuits.journal().set_dependency(dependency);
        self.shared.change(|shared| shared.dependency = dependency);
        self
    }

    /// Reports what happens to an observer: rejections, and every change of a breaker's state, in order.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        self.observed(Some(observer))
    }

    pub(crate) fn observed(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        // A clone that reports to nobody takes nobody away from those that do.
        if observer.is_some() {
            let journal = self.shared.circuits.journal();
            journal.set_observer(observer.clone());
        }
        self.shared.change(|shared| shared.observer = observer);
        self
    }

    pub(crate) fn policy(&self) -> &BreakerPolicy {
        &self.shared.policy
    }

    pub(crate) fn judged_by(mut self, protocol: P) -> Self {
        self.shared.change(|shared| shared.protocol = protocol);
        self
    }

    /// Returns a handle that reads the breaker, and forces it: of all requests, or of those without a key.
    #[must_use]
    pub fn handle(&self) -> BreakerHandle {
        BreakerHandle::new(self.shared.circuits.clone())
    }
}

impl<S, P, K> Layer<S> for BreakerLayer<P, K>
where
    Shared<P, K>: Clone,
{
    type Service = Breaker<S, P, K>;

    fn layer(&self, inner: S) -> Breaker<S, P, K> {
        Breaker::new(inner, self.shared.clone())
    }
}
