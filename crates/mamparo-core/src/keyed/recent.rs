//! Values in the order of their last use, at most so many.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// A place in the list: entries are linked by their index, so that a use moves nothing.
type Index = u32;

/// No place.
const END: Index = Index::MAX;

pub(super) struct Recent<V> {
    places: HashMap<u64, Index, BuildHasherDefault<Hashed>>,
    entries: Vec<Used<V>>,
    newest: Index,
    oldest: Index,
    most: usize,
}

struct Used<V> {
    key: u64,
    value: V,
    newer: Index,
    older: Index,
}

impl<V: Clone> Recent<V> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            places: HashMap::default(),
            entries: Vec::new(),
            newest: END,
            oldest: END,
            most: most.clamp(1, END as usize),
        }
    }

    /// Uses the key's value; a new key's is made, from what it displaces if the bound is reached.
    pub(super) fn use_or_make(&mut self, key: u64, make: impl FnOnce(Option<&V>) -> V) -> V {
        let full = self.entries.len() >= self.most;
        let place = match self.places.entry(key) {
            Entry::Occupied(known) => {
                let at = *known.get();
                self.touch(at);
                return self.entries[at as usize].value.clone();
            }
            Entry::Vacant(place) => place,
        };
        if !full {
            let at = self.entries.len() as Index;
            let value = make(None);
            place.insert(at);
            self.entries.push(Used {
                key,
                value: value.clone(),
                newer: END,
                older: END,
            });
            self.link(at);
            return value;
        }
        // Made before anything is changed: should it panic, all is as it was.
        let at = self.oldest;
        let value = make(Some(&self.entries[at as usize].value));
        place.insert(at);
        let entry = &mut self.entries[at as usize];
        entry.value = value.clone();
        let displaced = std::mem::replace(&mut entry.key, key);
        self.places.remove(&displaced);
        self.touch(at);
        value
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|entry| &entry.value)
    }

    fn touch(&mut self, at: Index) {
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
