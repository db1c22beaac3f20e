//! All breakers of one layer.

use std::sync::Arc;

use super::circuit::Circuit;
use super::config::BreakerPolicy;
use super::journal::Journal;
use super::keys::Keys;

/// The breaker of a layer, and those of its keys; clones share them.
#[derive(Clone, Debug)]
pub(super) struct Circuits {
    /// For all requests, or for those that have no key.
    whole: Arc<Circuit>,
    keys: Option<Arc<Keys>>,
}

impl Circuits {
    pub(super) fn new(policy: &Arc<BreakerPolicy>, keyed: bool) -> Self {
        let journal = Arc::new(Journal::new());
        let keys = || Arc::new(Keys::new(Arc::clone(policy), Arc::clone(&journal)));
        Self {
            keys: keyed.then(keys),
            whole: Arc::new(Circuit::new(Arc::clone(policy), journal, None, true)),
        }
    }

    #[inline]
    pub(super) fn whole(&self) -> &Circuit {
        &self.whole
    }

    /// Returns the breaker of a key, where there is one a key.
    pub(super) fn of(&self, key: &str) -> Option<Arc<Circuit>> {
        let keys = self.keys.as_ref()?;
        Some(keys.get(key))
    }

    pub(super) fn keys(&self) -> Option<&Keys> {
        self.keys.as_deref()
    }

    pub(super) fn journal(&self) -> &Arc<Journal> {
        self.whole.journal()
    }
}
