//! A bounded set of breakers, one a key.

use std::borrow::Cow;
use std::sync::Arc;

use mamparo_core::clock;
use mamparo_core::fnv;
use mamparo_core::keyed::Keyed;

use super::circuit::Circuit;
use super::config::BreakerPolicy;
use super::journal::Journal;

/// As many bytes of a key as are shown; a longer one ends with a hash of it.
const MAX_SHOWN: usize = 128;

/// The breakers of all keys.
#[derive(Debug)]
pub(super) struct Keys {
    table: Keyed<Arc<Circuit>>,
    policy: Arc<BreakerPolicy>,
    journal: Arc<Journal>,
}

impl Keys {
    pub(super) fn new(policy: Arc<BreakerPolicy>, journal: Arc<Journal>) -> Self {
        Self {
            table: Keyed::new(policy.max_keys),
            policy,
            journal,
        }
    }

    /// Returns the breaker of a key, a new one if there is none. What gives way to it is not forgotten in silence.
    pub(super) fn get(&self, key: &str) -> Arc<Circuit> {
        let mut evicted = false;
        let in_use = |circuit: &Arc<Circuit>| !circuit.is_closed();
        let circuit = self.table.get_or_make_sparing(key, in_use, |oldest| {
            let new = Arc::new(self.make(key));
            if let Some(oldest) = oldest {
                // Here, so that its end comes before whatever becomes of the same key's next breaker.
                oldest.retire(clock::now());
                evicted = true;
            }
            new
        });
        // Once the table is free again: whoever hears of it may make a call.
        if evicted {
            self.journal.tell();
        }
        circuit
    }

    fn make(&self, key: &str) -> Circuit {
        let key = Arc::from(shown(key).as_ref());
        let journal = Arc::clone(&self.journal);
        Circuit::new(Arc::clone(&self.policy), journal, Some(key), false)
    }

    /// Returns the breaker of a key, if it has one.
    pub(super) fn find(&self, key: &str) -> Option<Arc<Circuit>> {
        self.table.get(key)
    }

    /// Returns the keys that have a breaker.
    pub(super) fn all(&self) -> Vec<Arc<str>> {
        let mut keys = Vec::new();
        self.table
            .for_each(|circuit| keys.extend(circuit.key().cloned()));
        keys
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }
}

/// Returns what is shown of a key.
fn shown(key: &str) -> Cow<'_, str> {
    if key.len() <= MAX_SHOWN {
        return key.into();
    }
    let start = &key[..key.floor_char_boundary(MAX_SHOWN)];
    format!("{start}…{:016x}", fnv::hash(key.as_bytes())).into()
}
