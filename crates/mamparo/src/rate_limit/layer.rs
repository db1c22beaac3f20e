//! Settings and shared state of a rate limit.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_core::http::{Quota, QuotaPolicy};
use mamparo_core::keyed::Keyed;
use mamparo_core::shard::Spread;
use mamparo_core::{CallContext, Dependency, InvalidSetting, Observer, Rejection};
use tower_layer::Layer;

use super::bucket::Bucket;
use super::common::Common;
use super::error::limited;
use super::shared::shared_key;
use super::{
    Costed, HttpLimits, LimitStore, NoLimits, OneLimit, PerKey, PerTenant, RateLimit,
    RateLimitHandle, RateLimitPolicy, Replicas, ServerLimits,
};

/// Lets calls pass at a rate; see the [module](super).
///
/// `C` says who pays and how much: [`OneLimit`], [`PerTenant`], [`PerKey`], [`Costed`], or one of your own.
/// `L` reads from answers what the dependency says of its own limit: [`NoLimits`] or [`HttpLimits`]; or it tells a server's
/// callers what is left of theirs: [`ServerLimits`].
#[derive(Clone, Debug)]
pub struct RateLimitLayer<C = OneLimit, L = NoLimits> {
    shared: Spread<Shared<C, L>>,
}

/// What all services of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<C, L> {
    pub(super) policy: RateLimitPolicy,
    pub(super) charge: C,
    pub(super) limits: L,
    pub(super) dependency: Dependency,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) since: Since,
    /// How a server's limit is told to its callers; none where it is not.
    pub(super) told: Option<QuotaPolicy>,
    /// The limit of all that have no key.
    pub(super) one: Arc<Bucket>,
    pub(super) keys: Option<Arc<Keyed<Arc<Bucket>>>>,
    /// Where the limit is kept, if replicas share it.
    pub(super) common: Option<Arc<Common>>,
}

/// When the layer was made: instants are kept as nanoseconds since then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since(Instant);

impl Since {
    #[inline]
    pub(super) fn nanos(self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.0);
        let whole = since.as_secs().wrapping_mul(1_000_000_000);
        whole.wrapping_add(u64::from(since.subsec_nanos()))
    }
}

impl<C, L> Shared<C, L> {
    /// The limit of a key, if there is one: else [`Self::one`] is the limit.
    #[inline]
    pub(super) fn own<K: Hash>(&self, key: Option<&K>) -> Option<Arc<Bucket>> {
        // The key first: where there never is one, nothing is left of this.
        let (key, keys) = (key?, self.keys.as_ref()?);
        let make = |displaced: Option<&Arc<Bucket>>| match self.common {
            None => Arc::new(Bucket::in_place_of(displaced)),
            Some(_) => Arc::new(Bucket::of_shared(shared_key(key))),
        };
        Some(keys.get_or_make(key, make))
    }

    /// The rejection of what this limit lets pass after so many nanoseconds.
    pub(super) fn limited(&self, context: &CallContext, bucket: &Bucket, wait: u64) -> Rejection {
        let rejection = limited(self.name(context), Duration::from_nanos(wait));
        match self.quota(bucket, CallContext::now) {
            Some(quota) => rejection.with_quota(quota),
            None => rejection,
        }
    }

    /// What is left of a limit, where that is told.
    #[inline]
    pub(super) fn quota(&self, bucket: &Bucket, now: impl FnOnce() -> Instant) -> Option<Quota> {
        let told = self.told.as_ref().filter(|_| !self.policy.is_off())?;
        let all = (self.policy.gcra, bucket.meter.full_at());
        let alone = self.common.as_ref();
        let alone = alone.and_then(|common| common.seen_alone(bucket, self.policy.gcra));
        let (gcra, full_at) = alone.unwrap_or(all);
        let (left, more_in) = gcra.left(full_at, self.since.nanos(now()));
        Some(told.at(left, more_in.map(Duration::from_nanos)))
    }

    /// The dependency's name: this layer's own, or else the operation's.
    pub(super) fn name(&self, context: &CallContext) -> Dependency {
        if self.dependency.is_unnamed() {
            context.dependency()
        } else {
            self.dependency
        }
    }
}

impl RateLimitLayer {
    /// Limits the calls of any service, all of them together.
    #[must_use]
    pub fn new(policy: RateLimitPolicy) -> Self {
        Self::with_limits(policy, NoLimits)
    }
}

impl RateLimitLayer<OneLimit, HttpLimits> {
    /// Limits HTTP calls, all of them together; obeys what the dependency says if the policy [says so].
    ///
    /// [says so]: super::RateLimitBuilder::obey
    #[must_use]
    pub fn http(policy: RateLimitPolicy) -> Self {
        Self::with_limits(policy, HttpLimits::default())
    }
}

impl RateLimitLayer<OneLimit, ServerLimits> {
    /// Limits a server's own callers, and tells them what is left on every answer and refusal.
    ///
    /// The fields are `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10), by the name `rate-limit`; see
    /// [`told_as`](Self::told_as). A refusal has them where a [`RejectionLayer`](crate::rejection) stands further out.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
    /// use std::convert::Infallible;
    /// use std::time::Duration;
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), mamparo_core::BoxError> {
    /// let policy = RateLimitPolicy::per(Duration::from_secs(60), 100).build()?;
    /// let server = RateLimitLayer::server(policy)
    ///     .layer(service_fn(async |_: Request<String>| Ok::<_, Infallible>(Response::new(()))));
    /// let answer = server.oneshot(Request::default()).await?;
    /// assert_eq!(answer.headers()["ratelimit-policy"], r#""rate-limit";q=100;w=60"#);
    /// assert_eq!(answer.headers()["ratelimit"], r#""rate-limit";r=99;t=1"#);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn server(policy: RateLimitPolicy) -> Self {
        Self::with_limits(policy, ServerLimits).told_as(policy.quota("rate-limit").ok())
    }
}

impl<C: Clone> RateLimitLayer<C, ServerLimits> {
    /// Tells callers of the limit by another name, or by the legacy fields; none tells them nothing.
    ///
    /// The name also stands in the body of a refusal. Where several limits hold, each should have its own.
    ///
    /// ```
    /// use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
    /// use std::time::Duration;
    ///
    /// let policy = RateLimitPolicy::per(Duration::from_secs(60), 100).build()?;
    /// let layer = RateLimitLayer::server(policy).told_as(policy.quota("per-client")?.with_legacy());
    /// # let _ = layer;
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    #[must_use]
    pub fn told_as(mut self, quota: impl Into<Option<QuotaPolicy>>) -> Self {
        let quota = quota.into();
        self.shared.change(|shared| shared.told = quota);
        self
    }
}

impl<L> RateLimitLayer<OneLimit, L>
where
    L: Clone,
{
    /// Limits the calls of a protocol, all of them together.
    #[must_use]
    pub fn with_limits(policy: RateLimitPolicy, limits: L) -> Self {
        Self {
            shared: Spread::new(Shared {
                policy,
                charge: OneLimit,
                limits,
                dependency: Dependency::UNNAMED,
                observer: None,
                since: Since(clock::now()),
                told: None,
                one: Arc::default(),
                keys: None,
                common: None,
            }),
        }
    }

    /// Gives each tenant a limit of its own; see [`CallContext::tenant`].
    #[must_use]
    pub fn per_tenant(self) -> RateLimitLayer<PerTenant, L> {
        self.keyed(PerTenant)
    }

    /// Gives each key of a request a limit of its own: an API key, an authority, a path.
    ///
    /// Requests without a key pay together, from a limit of their own.
    ///
    /// ```
    /// use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
    /// use std::time::Duration;
    ///
    /// let policy = RateLimitPolicy::per(Duration::from_secs(1), 10).build()?;
    /// let layer = RateLimitLayer::http(policy).per_key(|request: &http::Request<String>| {
    ///     request.headers().get("x-api-key").cloned()
    /// });
    /// # let _ = layer;
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    #[must_use]
    pub fn per_key<F, Req, K>(self, key: F) -> RateLimitLayer<PerKey<F>, L>
    where
        F: Fn(&Req) -> Option<K> + Clone + Send + Sync + 'static,
        K: Hash,
    {
        self.keyed(PerKey(key))
    }

    /// Lets a type of your own say who pays and how much.
    #[must_use]
    pub fn keyed<C: Clone>(self, charge: C) -> RateLimitLayer<C, L> {
        let keys = Keyed::new(self.shared.policy.settings.max_keys);
        self.charging(|_| charge, Some(Arc::new(keys)))
    }
}

impl<C: Clone, L: Clone> RateLimitLayer<C, L> {
    /// Says what each request costs; 1 unless told otherwise.
    ///
    /// What costs nothing passes whenever the limit is not used up. What costs more than a burst is rejected with
    /// [`Reason::AboveBurst`](mamparo_core::Reason::AboveBurst), since it would wait for ever.
    #[must_use]
    pub fn cost<F, Req>(self, cost: F) -> RateLimitLayer<Costed<C, F>, L>
    where
        F: Fn(&Req) -> u32 + Clone + Send + Sync + 'static,
    {
        let keys = self.shared.keys.clone();
        self.charging(|charge| Costed { charge, cost }, keys)
    }

    fn charging<D: Clone>(
        self,
        charge: impl FnOnce(C) -> D,
        keys: Option<Arc<Keyed<Arc<Bucket>>>>,
    ) -> RateLimitLayer<D, L> {
        let shared = Shared::clone(&self.shared);
        RateLimitLayer {
            shared: Spread::new(Shared {
                policy: shared.policy,
                charge: charge(shared.charge),
                limits: shared.limits,
                dependency: shared.dependency,
                observer: shared.observer,
                since: shared.since,
                told: shared.told,
                one: shared.one,
                keys,
                common: shared.common,
            }),
        }
    }

    /// Names the dependency; needed where no layer around this one does.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Dependency>) -> Self {
        let dependency = dependency.into();
        self.shared.change(|shared| shared.dependency = dependency);
        self
    }

    /// Reports what happens to an observer.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        self.observed(Some(observer))
    }

    pub(crate) fn observed(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        self.shared.change(|shared| shared.observer = observer);
        self
    }

    /// Keeps the limit in a store, so that several replicas share it; while that is away, each goes by its own part.
    ///
    /// A call that the replica has nothing to pay for with asks the store first, for at most [`Replicas::answer_within`]; calls that come
    /// together ask once. What the store refused is refused here, without asking, until it would pass. What a call took is not given back.
    ///
    /// In any stretch of time there passes, in all, at most the rate's share of it plus one burst, plus what replicas
    /// hold ([`Replicas::batch`]). Each time that the store goes away and comes back adds at most one burst and one call
    /// a replica; as long as it is away only from some of the replicas, those add their parts of the rate.
    ///
    /// # Errors
    ///
    /// Refuses no replica, an empty batch, and times of zero.
    pub fn shared(
        mut self,
        store: impl LimitStore,
        replicas: Replicas,
    ) -> Result<Self, InvalidSetting> {
        replicas.check()?;
        let common = Arc::new(Common::new(Arc::new(store), replicas));
        self.shared.change(|shared| shared.common = Some(common));
        Ok(self)
    }

    /// The same limits by other settings: what was used of them stays used, for all that share them.
    pub(crate) fn with_policy(mut self, policy: RateLimitPolicy) -> Self {
        let (old, since) = (self.shared.policy, self.shared.since);
        if !old.is_off() && !policy.is_off() {
            let now = since.nanos(clock::now());
            self.shared.one.meter.convert(old.gcra, policy.gcra, now);
        }
        self.shared.change(|shared| shared.policy = policy);
        self
    }

    pub(crate) fn policy(&self) -> &RateLimitPolicy {
        &self.shared.policy
    }

    /// Returns a handle that reads the limit of all calls that have no key.
    #[must_use]
    pub fn handle(&self) -> RateLimitHandle {
        let Shared {
            policy, since, one, ..
        } = &*self.shared;
        RateLimitHandle::new(*policy, *since, Arc::clone(one))
    }

    /// Returns for how many keys a limit is kept now.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.shared.keys.as_ref().map_or(0, |keys| keys.len())
    }
}

impl<S, C: Clone, L: Clone> Layer<S> for RateLimitLayer<C, L> {
    type Service = RateLimit<S, C, L>;

    fn layer(&self, inner: S) -> RateLimit<S, C, L> {
        RateLimit::new(inner, self.shared.clone())
    }
}
