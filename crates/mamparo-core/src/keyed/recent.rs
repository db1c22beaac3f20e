//! Values in the order of their last use.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A place in the list: entries are linked by their index, so that a use moves nothing.
type Index = u32;

/// No place.
const END: Index = Index::MAX;

/// So many of the oldest are looked at for one that need not be spared.
const LOOKED_AT: usize = 8;

pub(super) struct Recent<V> {
    places: HashMap<u64, Index, BuildHasherDefault<Hashed>>,
    entries: Vec<Used<V>>,
    newest: Index,
    oldest: Index,
}

struct Used<V> {
    key: u64,
    value: V,
    newer: Index,
    older: Index,
}

impl<V> Recent<V> {
    pub(super) fn new() -> Self {
        Self {
            places: HashMap::default(),
            entries: Vec::new(),
            newest: END,
            oldest: END,
        }
    }

    pub(super) fn get(&self, key: u64) -> Option<&V> {
        let at = *self.places.get(&key)?;
        Some(self.value(at))
    }

    /// Returns the key's value, which is the newest then.
    pub(super) fn touch(&mut self, key: u64) -> Option<&V> {
        let at = *self.places.get(&key)?;
        self.make_newest(at);
        Some(self.value(at))
    }

    pub(super) fn value(&self, at: Index) -> &V {
        &self.entries[at as usize].value
    }

    /// Adds a key that is not there yet.
    pub(super) fn add(&mut self, key: u64, value: V) {
        let at = self.entries.len() as Index;
        self.places.insert(key, at);
        self.entries.push(Used {
            key,
            value,
            newer: END,
            older: END,
        });
        self.link(at);
    }

    /// Puts a key that is not there yet in the place of another.
    pub(super) fn replace(&mut self, at: Index, key: u64, value: V) {
        let entry = &mut self.entries[at as usize];
        entry.value = value;
        let displaced = std::mem::replace(&mut entry.key, key);
        self.places.remove(&displaced);
        self.places.insert(key, at);
        self.make_newest(at);
    }

    /// Returns the oldest, but one of the next few if those before it are to be spared.
    pub(super) fn oldest(&self, spare: impl Fn(&V) -> bool) -> Option<Index> {
        let mut at = self.oldest;
        for _ in 0..LOOKED_AT {
            if at == END {
                break;
            }
            if !spare(self.value(at)) {
                return Some(at);
            }
            at = self.entries[at as usize].newer;
        }
        (self.oldest != END).then_some(self.oldest)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|entry| &entry.value)
    }

    fn make_newest(&mut self, at: Index) {
        if self.newest != at {
            self.unlink(at);
            self.link(at);
        }
    }

    fn link(&mut self, at: Index) {
        let older = std::mem::replace(&mut self.newest, at);
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (END, older);
        match older {
            END => self.oldest = at,
            older => self.entries[older as usize].newer = at,
        }
    }

    fn unlink(&mut self, at: Index) {
        let Used { newer, older, .. } = self.entries[at as usize];
        match newer {
            END => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            END => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }
}

/// The keys are hashes already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = crate::fnv::hash(bytes); // not reached: only whole words are written
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
