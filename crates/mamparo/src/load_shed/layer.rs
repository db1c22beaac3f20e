//! Settings and shared state of load shedding.

use std::sync::Arc;

use http::HeaderName;
use mamparo_core::clock::{self, Instant};
use mamparo_core::http::Http;
use mamparo_core::shard::Spread;
use mamparo_core::{CallContext, Dependency, Observer};
use tower_layer::Layer;

use super::load::Load;
use super::priority::{AllEqual, ArrivedAt, ByHeader, ByPriority, Priority};
use super::{LoadShed, LoadShedPolicy};

/// Refuses calls while the load is too high; see the [module](super).
///
/// `P` is the protocol, which says what an answer means and when it is over: [`Http`], [`Plain`](mamparo_core::Plain), or
/// one of your own. `A` says what a request is worth and when it arrived: [`AllEqual`] unless told otherwise.
#[derive(Clone, Debug)]
pub struct LoadShedLayer<P, A = AllEqual> {
    shared: Spread<Shared<P, A>>,
}

/// What all services of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<P, A> {
    pub(super) policy: LoadShedPolicy,
    pub(super) protocol: P,
    pub(super) assess: A,
    pub(super) dependency: Dependency,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) load: Arc<Load>,
}

impl<P, A> Shared<P, A> {
    /// The dependency's name: this layer's own, or else the operation's.
    pub(super) fn name(&self, context: &CallContext) -> Dependency {
        if self.dependency.is_unnamed() {
            context.dependency()
        } else {
            self.dependency
        }
    }
}

impl LoadShedLayer<Http> {
    /// Sheds HTTP requests, judged by the default table of statuses.
    #[must_use]
    pub fn http(policy: LoadShedPolicy) -> Self {
        Self::new(policy, Http::default())
    }
}

impl<P: Clone> LoadShedLayer<P> {
    /// Sheds requests of a protocol.
    #[must_use]
    pub fn new(policy: LoadShedPolicy, protocol: P) -> Self {
        Self {
            shared: Spread::new(Shared {
                policy,
                protocol,
                assess: AllEqual,
                dependency: Dependency::UNNAMED,
                observer: None,
                load: Arc::new(Load::new(clock::now())),
            }),
        }
    }

    /// Lets a function say what a request is worth.
    ///
    /// It must not believe what an outsider writes: see [`priority_header`](Self::priority_header).
    #[must_use]
    pub fn priority<F, Req>(self, priority: F) -> LoadShedLayer<P, ByPriority<F>>
    where
        F: Fn(&Req) -> Priority + Clone + Send + Sync + 'static,
    {
        self.assessed(|_| ByPriority(priority))
    }

    /// Lets a header say what an HTTP request is worth, by the [names](Priority::named) of the priorities.
    ///
    /// It is believed up to `at_most`: what names a higher one is taken for that. What can't be read is worth the
    /// least, and a request without the header is [normal](Priority::Normal).
    #[must_use]
    pub fn priority_header(
        self,
        name: HeaderName,
        at_most: Priority,
    ) -> LoadShedLayer<P, ByHeader> {
        self.assessed(|_| ByHeader { name, at_most })
    }
}

impl<P: Clone, A: Clone> LoadShedLayer<P, A> {
    /// Lets a function say when a request arrived; none where it does not know.
    ///
    /// Without it, a request arrived when its operation began, where an outer layer has noted that, or when it came here.
    /// A server that reads its own queue's stamp says so here.
    #[must_use]
    pub fn arrived<F, Req>(self, arrived: F) -> LoadShedLayer<P, ArrivedAt<A, F>>
    where
        F: Fn(&Req) -> Option<Instant> + Clone + Send + Sync + 'static,
    {
        self.assessed(|assess| ArrivedAt { assess, arrived })
    }

    /// Lets a type of your own say what a request is worth and when it arrived.
    #[must_use]
    pub fn assessed<B: Clone>(self, assess: impl FnOnce(A) -> B) -> LoadShedLayer<P, B> {
        let shared = Shared::clone(&self.shared);
        LoadShedLayer {
            shared: Spread::new(Shared {
                policy: shared.policy,
                protocol: shared.protocol,
                assess: assess(shared.assess),
                dependency: shared.dependency,
                observer: shared.observer,
                load: shared.load,
            }),
        }
    }

    /// Names the dependency; needed where no layer around this one does. A server's own layer names none.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Dependency>) -> Self {
        let dependency = dependency.into();
        self.shared.change(|shared| shared.dependency = dependency);
        self
    }

    pub(crate) fn with_policy(mut self, policy: LoadShedPolicy) -> Self {
        self.shared.change(|shared| shared.policy = policy);
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

    pub(crate) fn policy(&self) -> &LoadShedPolicy {
        &self.shared.policy
    }

    pub(crate) fn judged_by(mut self, protocol: P) -> Self {
        self.shared.change(|shared| shared.protocol = protocol);
        self
    }

    /// Returns how many calls are under way, if their number is limited.
    #[must_use]
    pub fn in_flight(&self) -> Option<u64> {
        let counted = self.shared.policy.settings.max_in_flight.is_some();
        counted.then(|| self.shared.load.in_flight.running())
    }

    /// Tells whether calls are shed for the time that they waited.
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        self.shared.load.waits.is_overloaded()
    }
}

impl<S, P: Clone, A: Clone> Layer<S> for LoadShedLayer<P, A> {
    type Service = LoadShed<S, P, A>;

    fn layer(&self, inner: S) -> LoadShed<S, P, A> {
        LoadShed::new(inner, self.shared.clone())
    }
}
