//! The keys, in shards.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::recent::Recent;

/// Into how many parts a large table is divided, so that threads seldom wait for each other.
const SHARDS: usize = 16;

/// From so many keys on a table is divided: below, dividing it would make its bound uneven.
const LARGE: usize = 1024;

/// A value for each key, of at most so many keys; the least recently used gives way.
///
/// Of a key only a hash is kept, seeded anew in every table, so that nobody can choose keys that fall together and long
/// keys take no more memory than short ones. In a table for 1 024 keys or more, each sixteenth of the keys has its own
/// bound and its own order of use.
///
/// ```
/// use mamparo_core::keyed::Keyed;
/// use std::sync::Arc;
///
/// let table: Keyed<Arc<str>> = Keyed::new(2);
/// table.get_or_make(&"a", |_| "state of a".into());
/// table.get_or_make(&"b", |_| "state of b".into());
/// table.get_or_make(&"a", |_| unreachable!("it is still there"));
/// let c = table.get_or_make(&"c", |displaced| format!("after {}", displaced.unwrap()).into());
/// assert_eq!((&*c, table.len()), ("after state of b", 2));
/// ```
pub struct Keyed<V> {
    shards: Box<[Mutex<Recent<V>>]>,
    hasher: RandomState,
}

impl<V: Clone> Keyed<V> {
    /// Makes a table for so many keys, of which none is there yet; at least one, at most 2³² − 1.
    #[must_use]
    pub fn new(max_keys: usize) -> Self {
        let shards = if max_keys < LARGE { 1 } else { SHARDS };
        let shard = || Mutex::new(Recent::new(max_keys / shards));
        Self {
            shards: std::iter::repeat_with(shard).take(shards).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Returns the key's value; a new key's is made, and sees the value that gives way to it, if one must.
    ///
    /// `make` is called while other keys wait: it must be quick.
    pub fn get_or_make<K: Hash + ?Sized>(&self, key: &K, make: impl FnOnce(Option<&V>) -> V) -> V {
        let hash = self.hasher.hash_one(key);
        // The low bits place a key within its shard.
        let shard = (hash >> 32) as usize % self.shards.len();
        lock(&self.shards[shard]).use_or_make(hash, make)
    }

    /// Returns how many keys are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Tells whether no key is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Visits every value, in no order; keys of its part of the table wait meanwhile.
    pub fn for_each(&self, mut visit: impl FnMut(&V)) {
        for shard in &self.shards {
            lock(shard).values().for_each(&mut visit);
        }
    }
}

/// A panic in what makes a value leaves a shard as it was, so that its lock may be taken again.
fn lock<V>(shard: &Mutex<Recent<V>>) -> MutexGuard<'_, Recent<V>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V> fmt::Debug for Keyed<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn the_key_used_the_longest_ago_gives_way() {
        let table: Keyed<u32> = Keyed::new(3);
        for key in [1, 2, 3, 1] {
            table.get_or_make(&key, |displaced| {
                assert_eq!(displaced, None);
                key
            });
        }
        for (key, oldest) in [(4, 2), (5, 3), (6, 1), (7, 4)] {
            table.get_or_make(&key, |displaced| {
                assert_eq!(displaced, Some(&oldest));
                key
            });
        }
        assert_eq!(table.len(), 3);
        assert_eq!(table.get_or_make(&5, |_| 0), 5);
    }

    #[test]
    fn a_million_keys_stay_at_the_bound() {
        let table: Keyed<u64> = Keyed::new(10_000);
        for key in 0..1_000_000_u64 {
            table.get_or_make(&key, |_| key);
        }
        assert_eq!(table.len(), 10_000);
    }

    #[test]
    fn a_table_for_none_keeps_one() {
        let table: Keyed<u32> = Keyed::new(0);
        assert_eq!((table.get_or_make("a", |_| 1), table.len()), (1, 1));
        assert_eq!(table.get_or_make("b", |displaced| *displaced.unwrap()), 1);
    }

    #[test]
    fn a_panic_while_a_value_is_made_leaves_the_others() {
        let table: Keyed<u32> = Keyed::new(1);
        table.get_or_make("a", |_| 1);
        let panics = || table.get_or_make("b", |_| panic!("on purpose"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(table.get_or_make("a", |_| 2), 1);
    }
}
