//! All breakers of one layer.

use std::sync::Arc;

use super::circuit::Circuit;
use super::config::BreakerPolicy;
use super::journal::Journal;
use super::keys::Keys;

/// The breaker of a layer, and those of its keys.
#[derive(Debug)]
pub(super) struct Circuits {
    /// For all requests, or for those that have no key.
    whole: Circuit,
    keys: Option<Keys>,
    journal: Arc<Journal>,
}

impl Circuits {
    pub(super) fn new(policy: &Arc<BreakerPolicy>, keyed: bool) -> Arc<Self> {
        let journal = Arc::new(Journal::new());
        let keys = keyed.then(|| Keys::new(Arc::clone(policy), Arc::clone(&journal)));
        let whole = Circuit::new(Arc::clone(policy), Arc::clone(&journal), None, true);
        Arc::new(Self {
            whole,
            keys,
            journal,
        })
    }

    #[inline]
    pub(super) const fn whole(&self) -> &Circuit {
        &self.whole
    }

    /// Returns the breaker of a key, where there is one a key.
    pub(super) fn of(&self, key: &str) -> Option<Arc<Circuit>> {
        let keys = self.keys.as_ref()?;
        Some(keys.get(key))
    }

    pub(super) const fn keys(&self) -> Option<&Keys> {
        self.keys.as_ref()
    }

    pub(super) const fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }
}
