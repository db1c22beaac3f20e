//! The switch of a layer's faults.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use super::{FaultPlan, Protocol};

/// Turns a layer's faults off and on while it is in use, and replaces their plan; clones switch the same layer.
pub struct FaultHandle<Req, P: Protocol> {
    shared: Arc<Shared<Req, P>>,
}

impl<Req, P: Protocol> FaultHandle<Req, P> {
    pub(super) const fn new(shared: Arc<Shared<Req, P>>) -> Self {
        Self { shared }
    }

    /// Lets calls meet the faults of the plan, as a new layer does.
    pub fn turn_on(&self) {
        self.shared.on.store(true, Relaxed);
    }

    /// Lets all calls pass from now on; those that are late already stay so.
    pub fn turn_off(&self) {
        self.shared.on.store(false, Relaxed);
    }

    /// Tells whether calls meet faults.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.shared.on.load(Relaxed)
    }

    /// Replaces the plan; the next call is the first of the new one.
    pub fn set(&self, plan: FaultPlan<Req, P>) {
        let active = Arc::new(Active::new(plan));
        let mut place = self
            .shared
            .active
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *place = active;
    }

    /// Returns how many faults have happened so far, under any plan.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.shared.injected.load(Relaxed)
    }
}

/// What a layer, its services and its handles share.
pub(super) struct Shared<Req, P: Protocol> {
    on: AtomicBool,
    active: RwLock<Arc<Active<Req, P>>>,
    pub(super) injected: AtomicU64,
}

/// A plan in use.
pub(super) struct Active<Req, P: Protocol> {
    pub(super) plan: FaultPlan<Req, P>,
    /// The number of the next call.
    pub(super) calls: AtomicU64,
}

impl<Req, P: Protocol> Shared<Req, P> {
    pub(super) fn new(plan: FaultPlan<Req, P>) -> Self {
        Self {
            on: AtomicBool::new(true),
            active: RwLock::new(Arc::new(Active::new(plan))),
            injected: AtomicU64::new(0),
        }
    }

    /// The plan, unless faults are off.
    #[inline]
    pub(super) fn active(&self) -> Option<Arc<Active<Req, P>>> {
        if !self.on.load(Relaxed) {
            return None;
        }
        let active = self.active.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&active))
    }
}

impl<Req, P: Protocol> Active<Req, P> {
    const fn new(plan: FaultPlan<Req, P>) -> Self {
        Self {
            plan,
            calls: AtomicU64::new(0),
        }
    }
}

impl<Req, P: Protocol> Clone for FaultHandle<Req, P> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared))
    }
}

impl<Req, P: Protocol> fmt::Debug for FaultHandle<Req, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultHandle")
            .field("on", &self.is_on())
            .field("injected", &self.injected())
            .finish_non_exhaustive()
    }
}
