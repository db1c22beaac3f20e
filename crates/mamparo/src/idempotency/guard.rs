//! What a run gives back when it is dropped.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::KeyStep;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::layer::Shared;
use super::{IdempotencyStore, Lease, StoreError, StoreErrorKind};

/// A lease that is given back when its run is dropped or panics, until it is settled.
pub(super) struct Guard<St: IdempotencyStore> {
    lease: Lease,
    shared: Arc<Shared<St>>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The handler has not been called: the key is forgotten.
    Asked,
    /// The handler was called: what it has done is not known.
    Ran,
    Settled,
}

impl<St: IdempotencyStore> Guard<St> {
    pub(super) const fn new(lease: Lease, shared: Arc<Shared<St>>) -> Self {
        Self {
            lease,
            shared,
            state: State::Asked,
        }
    }

    pub(super) const fn ran(&mut self) {
        self.state = State::Ran;
    }

    pub(super) const fn settled(&mut self) {
        self.state = State::Settled;
    }
}

impl<St: IdempotencyStore> Drop for Guard<St> {
    /// Tells the store in a task, since a drop can't wait. Where there is no runtime any more, the lease runs out.
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let (lease, shared) = (self.lease, Arc::clone(&self.shared));
        match self.state {
            State::Asked => drop(runtime.spawn(async move { shared.release(lease).await })),
            State::Ran => drop(runtime.spawn(async move { shared.abandon(lease).await })),
            State::Settled => {}
        }
    }
}

impl<St: IdempotencyStore> Shared<St> {
    /// Forgets a key for which nothing was done; if the store fails, the lease runs out.
    pub(super) async fn release(&self, lease: Lease) {
        if self.within(self.store.release(lease)).await.is_ok() {
            self.tell(Some(lease.id), KeyStep::Released);
        }
    }

    /// Ends the lease of a run of which nobody knows what it has done.
    pub(super) async fn abandon(&self, lease: Lease) {
        let ended = self.within(self.store.renew(lease, Duration::ZERO)).await;
        if ended.is_ok() {
            self.tell(Some(lease.id), KeyStep::Abandoned);
        }
    }

    /// Bounds one step of the store.
    pub(super) async fn within<T>(
        &self,
        step: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = self.policy.settings.store_timeout;
        match timeout(limit, step).await {
            Ok(result) => result,
            Err(elapsed) => Err(StoreError::new(StoreErrorKind::TimedOut, elapsed)),
        }
    }
}
