//! The keys, in shards.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::recent::Recent;

/// Into how many parts a large table is divided, so that threads seldom wait for each other.
const SHARDS: usize = 16;

/// From so many keys on a table is divided: in a smaller one a part of it would keep too few to tell what is old.
const LARGE: usize = 1024;

/// A value for each key, of at most so many keys; the least recently used gives way.
///
/// Of a key only a hash is kept, seeded anew in every table, so that nobody can choose keys that fall together and long
/// keys take no more memory than short ones. A table for 1 024 keys or more is divided into sixteenths: each has its own
/// order of use, and keeps one key at least.
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
    /// How many keys there are, in all shards: none gives way while there is room in the table.
    keys: AtomicUsize,
    most: usize,
}

impl<V: Clone> Keyed<V> {
    /// Makes a table for so many keys, of which none is there yet; at least one, at most 2³² − 1.
    #[must_use]
    pub fn new(max_keys: usize) -> Self {
        let shards = if max_keys < LARGE { 1 } else { SHARDS };
        let shard = || Mutex::new(Recent::new());
        Self {
            shards: std::iter::repeat_with(shard).take(shards).collect(),
            hasher: RandomState::new(),
            keys: AtomicUsize::new(0),
            most: max_keys.min(u32::MAX as usize),
        }
    }

    /// Returns the key's value; a new key's is made, and sees the value that gives way to it, if one must.
    ///
    /// `make` is called while other keys wait: it must be quick.
    pub fn get_or_make<K: Hash + ?Sized>(&self, key: &K, make: impl FnOnce(Option<&V>) -> V) -> V {
        self.get_or_make_sparing(key, |_| false, make)
    }

    /// As [`get_or_make`](Self::get_or_make), but of the eight values that were used the longest ago, the first that is
    /// not to be spared gives way; the very oldest if all are.
    pub fn get_or_make_sparing<K: Hash + ?Sized>(
        &self,
        key: &K,
        spare: impl Fn(&V) -> bool,
        make: impl FnOnce(Option<&V>) -> V,
    ) -> V {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash);
        if let Some(value) = shard.touch(hash) {
            return value.clone();
        }
        let room = Room::of(&self.keys, self.most);
        let gives_way = match room {
            Some(_) => None,
            None => shard.oldest(spare),
        };
        // Made before anything is changed: should it panic, all is as it was.
        let value = make(gives_way.map(|at| shard.value(at)));
        match gives_way {
            Some(at) => shard.replace(at, hash, value.clone()),
            None => {
                shard.add(hash, value.clone());
                Room::take(&self.keys, room);
            }
        }
        value
    }

    /// Returns the key's value, if it has one; that is no use of it.
    pub fn get<K: Hash + ?Sized>(&self, key: &K) -> Option<V> {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).get(hash).cloned()
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Recent<V>> {
        // The low bits place a key within its shard.
        lock(&self.shards[(hash >> 32) as usize % self.shards.len()])
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

/// Room for one more key, given back unless it is taken.
struct Room<'a>(&'a AtomicUsize);

impl<'a> Room<'a> {
    fn of(keys: &'a AtomicUsize, most: usize) -> Option<Self> {
        let one_more = |keys: usize| (keys < most).then_some(keys + 1);
        let counted = keys.fetch_update(Relaxed, Relaxed, one_more);
        counted.is_ok().then(|| Self(keys))
    }

    /// Takes it; where there was none, a shard's only key is one too many.
    fn take(keys: &AtomicUsize, room: Option<Self>) {
        match room {
            Some(room) => std::mem::forget(room),
            None => {
                keys.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
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
    use proptest::prelude::*;
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
    fn nothing_gives_way_while_there_is_room_in_any_part_of_a_table() {
        let table: Keyed<usize> = Keyed::new(2_000);
        for key in 0..2_000 {
            table.get_or_make(&key, |displaced| {
                assert_eq!(displaced, None, "for {key}");
                key
            });
        }
        assert_eq!(table.len(), 2_000);
        assert!((0..2_000).all(|key| table.get(&key) == Some(key)));
        assert_eq!(table.get(&2_000), None);
    }

    #[test]
    fn a_value_that_is_to_be_spared_gives_way_last_and_among_so_many_only() {
        let table: Keyed<u32> = Keyed::new(20);
        let make = |key: u32, spared: u32| {
            let mut gone = None;
            table.get_or_make_sparing(
                &key,
                |value| *value <= spared,
                |oldest| {
                    gone = oldest.copied();
                    key
                },
            );
            gone
        };
        for key in 1..=20 {
            assert_eq!(make(key, 0), None);
        }
        assert_eq!(make(21, 7), Some(8));
        assert_eq!(make(22, 8), Some(9));
        assert_eq!(make(23, 10), Some(1), "the eight oldest are 1 to 7 and 10");
        assert_eq!(table.len(), 20);
    }

    #[test]
    fn threads_that_add_keys_together_add_no_more_than_fit() {
        let table: Keyed<u32> = Keyed::new(1_024);
        let add = &|thread: u32| {
            (0..2_000).for_each(|key| {
                table.get_or_make(&(thread, key), |_| key);
            })
        };
        std::thread::scope(|threads| {
            for thread in 0..4 {
                threads.spawn(move || add(thread));
            }
        });
        assert_eq!(table.len(), 1_024);
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

        let table: Keyed<u32> = Keyed::new(1);
        let panics = || table.get_or_make("b", |_| panic!("on purpose"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        table.get_or_make("a", |displaced| displaced.map_or(1, |_| unreachable!()));
        assert_eq!(table.get_or_make("b", |displaced| *displaced.unwrap()), 1);
    }

    proptest! {
        /// Against a list of all keys in the order of their last use.
        #[test]
        fn a_table_keeps_what_a_list_says(
            uses in prop::collection::vec((0..30_u8, any::<bool>()), 0..300),
            most in 1..20_usize,
        ) {
            let table: Keyed<(u8, bool)> = Keyed::new(most);
            let mut list: Vec<(u8, bool)> = Vec::new();
            for (key, spared) in uses {
                let mut gone = None;
                let value = table.get_or_make_sparing(&key, |(_, spared)| *spared, |oldest| {
                    gone = oldest.copied();
                    (key, spared)
                });
                if let Some(at) = list.iter().position(|(known, _)| *known == key) {
                    let known = list.remove(at);
                    prop_assert_eq!((value, gone), (known, None));
                } else {
                    let first = list.iter().take(8).position(|(_, spared)| !spared).unwrap_or(0);
                    let expected = (list.len() == most).then(|| list.remove(first));
                    prop_assert_eq!((value, gone), ((key, spared), expected));
                }
                list.push(value);
                prop_assert_eq!(table.len(), list.len());
                prop_assert!(list.iter().all(|value| table.get(&value.0) == Some(*value)));
            }
        }
    }
}
