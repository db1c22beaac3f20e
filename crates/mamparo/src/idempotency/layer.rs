//! Settings and shared state of idempotency keys.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mamparo_core::{CallContext, Event, KeyStep, Observer, What};
use tokio::sync::Semaphore;
use tower_layer::Layer;

use super::{Idempotency, IdempotencyPolicy, IdempotencyStore, KeyId};

/// Recognises requests by their idempotency keys, and answers a repeated one as the first; see the [module](super).
pub struct IdempotencyLayer<St> {
    shared: Arc<Shared<St>>,
}

/// What all services of a layer share.
pub(super) struct Shared<St> {
    pub(super) policy: IdempotencyPolicy,
    pub(super) store: Arc<St>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// Places for the runs whose callers have gone away.
    pub(super) behind: Arc<Semaphore>,
    warned: Arc<AtomicBool>,
}

impl<St: IdempotencyStore> IdempotencyLayer<St> {
    /// Keeps keys in a store, by a policy.
    #[must_use]
    pub fn new(store: St, policy: IdempotencyPolicy) -> Self {
        let behind = Arc::new(Semaphore::new(policy.settings.left_behind));
        Self {
            shared: Arc::new(Shared {
                policy,
                store: Arc::new(store),
                observer: None,
                behind,
                warned: Arc::default(),
            }),
        }
    }

    /// Reports what happens to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        let mut shared = (*self.shared).clone();
        shared.observer = Some(observer);
        self.shared = Arc::new(shared);
        self
    }

    /// Returns the policy, whose [`describe`](IdempotencyPolicy::describe) is for callers to read.
    #[must_use]
    pub fn policy(&self) -> &IdempotencyPolicy {
        &self.shared.policy
    }

    /// Returns how many runs are being finished whose callers have gone away.
    #[must_use]
    pub fn left_behind(&self) -> usize {
        let places = self.shared.policy.settings.left_behind;
        places.saturating_sub(self.shared.behind.available_permits())
    }

    /// Waits until no run is left whose caller has gone away: for a server that stops.
    pub async fn settled(&self) {
        let places = self.shared.policy.settings.left_behind;
        // Never closed; all places are free at once when nothing runs.
        let all = u32::try_from(places).unwrap_or(u32::MAX);
        let _free = self.shared.behind.acquire_many(all).await;
    }
}

impl<St: IdempotencyStore> Shared<St> {
    pub(super) fn tell(&self, id: Option<KeyId>, step: KeyStep) {
        self.tell_why(id, step, None);
    }

    pub(super) fn tell_why(
        &self,
        id: Option<KeyId>,
        step: KeyStep,
        error: Option<&(dyn Error + 'static)>,
    ) {
        let hash = id.map(|id| id.short());
        let what = What::Key { hash, step, error };
        Event::report(self.observer.as_ref(), &CallContext::current(), what);
    }

    /// Says once that the store will not last.
    pub(super) fn warn_once(&self) {
        if !St::LASTS && !self.warned.swap(true, Ordering::Relaxed) {
            self.tell(None, KeyStep::Volatile);
        }
    }
}

impl<S, St> Layer<S> for IdempotencyLayer<St> {
    type Service = Idempotency<S, St>;

    fn layer(&self, inner: S) -> Idempotency<S, St> {
        Idempotency::new(inner, Arc::clone(&self.shared))
    }
}

impl<St> Clone for Shared<St> {
    fn clone(&self) -> Self {
        Self {
            policy: self.policy.clone(),
            store: Arc::clone(&self.store),
            observer: self.observer.clone(),
            behind: Arc::clone(&self.behind),
            warned: Arc::clone(&self.warned),
        }
    }
}

impl<St> Clone for IdempotencyLayer<St> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<St: fmt::Debug> fmt::Debug for IdempotencyLayer<St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyLayer")
            .field("store", &self.shared.store)
            .field("policy", &self.shared.policy)
            .finish_non_exhaustive()
    }
}
