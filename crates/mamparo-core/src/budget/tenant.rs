use std::fmt;
use std::num::NonZeroU64;

use crate::fnv;

/// How many tenants have a budget of their own before some must share; fixed, so that hostile names can't grow it.
pub const TENANT_SLOTS: usize = 1_024;

/// Who an operation is done for, as a hash: the name itself is not kept, and not shown.
///
/// The hash is 64-bit FNV-1a (IETF draft-eastlake-fnv), the same in every process and version. Tenants whose hashes
/// fall into the same of the [`TENANT_SLOTS`] slots share one budget; someone who may choose names can choose to
/// share another's, and is then still bounded by it and by the dependency's own budget.
///
/// ```
/// use mamparo_core::Tenant;
/// assert_eq!(Tenant::of("acme"), Tenant::of("acme"));
/// assert_eq!(format!("{:?}", Tenant::of("a")), "Tenant(af63dc4c8601ec8c)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tenant(NonZeroU64);

impl Tenant {
    /// Hashes a tenant's name.
    #[must_use]
    pub const fn of(name: &str) -> Self {
        Self(match NonZeroU64::new(fnv::hash(name.as_bytes())) {
            Some(hash) => hash,
            None => NonZeroU64::MIN,
        })
    }

    /// The tenant's place in a table of [`TENANT_SLOTS`]; folded first, because FNV mixes its high half better.
    pub fn slot(self) -> usize {
        let hash = self.0.get();
        (hash ^ (hash >> 32)) as usize % TENANT_SLOTS
    }
}

impl fmt::Debug for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tenant({:016x})", self.0)
    }
}
