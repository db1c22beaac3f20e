//! What an operator sees of a bulkhead, and may change.

use std::fmt;
use std::sync::Arc;

use mamparo_core::{InvalidSetting, Tenant};

use super::adaptive::Governor;
use super::config::checked_limit;
use super::places::Places;

/// Reads a bulkhead while it works, and resizes it; made by [`BulkheadLayer::handle`](super::BulkheadLayer::handle).
///
/// ```
/// use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
/// use mamparo_core::Plain;
///
/// let layer = BulkheadLayer::new(BulkheadPolicy::default(), Plain::not_idempotent());
/// let handle = layer.handle();
/// handle.resize(8)?;
/// assert_eq!((handle.in_flight(), handle.queued(), handle.limit()), (0, 0, 8));
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone)]
pub struct BulkheadHandle {
    places: Arc<Places>,
    adaptive: Option<Arc<Governor>>,
}

impl BulkheadHandle {
    pub(super) const fn new(places: Arc<Places>, adaptive: Option<Arc<Governor>>) -> Self {
        Self { places, adaptive }
    }

    /// Returns how many calls hold a place now.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.places.occupancy().in_flight()
    }

    /// Returns how many calls wait for a place now.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.places.occupancy().queued()
    }

    /// Returns the limit in force: how many calls may hold a place.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.places.occupancy().limit()
    }

    /// Returns how many calls hold a place on a tenant's behalf, 0 where the bulkhead has no partitions.
    #[must_use]
    pub fn in_flight_for(&self, tenant: Tenant) -> usize {
        let partitions = self.places.partitions();
        partitions.map_or(0, |partitions| {
            self.places.running_for(partitions.seat(Some(tenant)))
        })
    }

    /// Sets the limit, at once: nobody is thrown out by a smaller one, and who waits enters by a larger one.
    ///
    /// An adaptive limit goes on from there, within its floor and ceiling.
    ///
    /// # Errors
    ///
    /// Refuses 0: nothing would pass any more.
    pub fn resize(&self, limit: usize) -> Result<(), InvalidSetting> {
        let limit = checked_limit(limit)?;
        match &self.adaptive {
            Some(governor) => governor.restart(&self.places, limit),
            None => self.places.set_limit(limit),
        }
        self.places.serve();
        Ok(())
    }
}

impl fmt::Debug for BulkheadHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkheadHandle")
            .field("in_flight", &self.in_flight())
            .field("queued", &self.queued())
            .field("limit", &self.limit())
            .finish()
    }
}
