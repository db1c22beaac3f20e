//! A store in memory, for tests.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};

use super::{
    Begin, Begun, Fence, Fingerprint, IdempotencyStore, KeyId, Lease, Record, Row, SealedAnswer,
    Step, StoreError, StoreErrorKind, Written,
};

/// The most keys that are kept.
pub const MAX_KEYS: usize = 1_000_000;

/// The parts that keys are spread over, so that threads seldom meet.
const PARTS: usize = 64;

/// Keeps keys in this process's memory: for tests, and for trying things out.
///
/// A restart forgets all keys, and another replica has never heard of them: whoever sends a request again to either has it
/// run twice. The layer reports that once, as an event.
///
/// ```
/// use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy, MemoryStore};
///
/// let policy = IdempotencyPolicy::for_all_callers().build()?;
/// let layer = IdempotencyLayer::new(MemoryStore::new(), policy);
/// # let _ = layer;
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryStore {
    parts: Arc<[Mutex<HashMap<KeyId, Kept>>]>,
    most: usize,
}

#[derive(Clone, Debug)]
struct Kept {
    fence: Fence,
    fingerprint: Fingerprint,
    lease_until: Instant,
    expires_at: Instant,
    answer: Option<SealedAnswer>,
}

impl Kept {
    fn row(&self, now: Instant) -> Option<Row> {
        (self.expires_at > now).then(|| Row {
            fence: self.fence,
            fingerprint: self.fingerprint,
            lease_left: self.lease_until.saturating_duration_since(now),
            answer: self.answer.clone(),
        })
    }

    /// What `lease` may do here.
    fn standing(&self, lease: Lease, now: Instant) -> Written {
        if self.fence != lease.fence || self.expires_at <= now {
            Written::Lost
        } else if self.answer.is_some() {
            Written::Before
        } else {
            Written::Done
        }
    }
}

impl MemoryStore {
    /// Makes an empty store that keeps up to [`MAX_KEYS`] keys.
    #[must_use]
    pub fn new() -> Self {
        Self::with_room_for(MAX_KEYS)
    }

    /// Makes an empty store that keeps about that many keys, and refuses more.
    #[must_use]
    pub fn with_room_for(most: usize) -> Self {
        Self {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            most: most.div_ceil(PARTS),
        }
    }

    fn part(&self, id: KeyId) -> MutexGuard<'_, HashMap<KeyId, Kept>> {
        let part = usize::from(id.as_bytes()[0]) % PARTS;
        // A panic elsewhere leaves no half-written key: each is written in one assignment.
        let locked = self.parts[part].lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the key, if the lease is still its own.
    fn write(&self, lease: Lease, change: impl FnOnce(&mut Kept, Instant)) -> Written {
        let now = clock::now();
        let mut part = self.part(lease.id);
        let Some(kept) = part.get_mut(&lease.id) else {
            return Written::Lost;
        };
        let standing = kept.standing(lease, now);
        if standing == Written::Done {
            change(kept, now);
        }
        standing
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl IdempotencyStore for MemoryStore {
    const LASTS: bool = false;

    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        let now = clock::now();
        let mut part = self.part(begin.id);
        if part.len() >= self.most && !part.contains_key(&begin.id) {
            part.retain(|_, kept| kept.expires_at > now);
            if part.len() >= self.most {
                return Err(StoreError::new(StoreErrorKind::Full, "too many keys"));
            }
        }
        let entry = part.entry(begin.id);
        let row = match &entry {
            Entry::Occupied(kept) => kept.get().row(now),
            Entry::Vacant(_) => None,
        };
        match begin.over(row) {
            Step::Start { again } => {
                let lease_until = clock::later(now, begin.term);
                entry.insert_entry(Kept {
                    fence: begin.fence,
                    fingerprint: begin.fingerprint,
                    lease_until,
                    expires_at: clock::later(lease_until, begin.retention),
                    answer: None,
                });
                Ok(Begun::Run { again })
            }
            Step::Held => Ok(Begun::Run { again: false }),
            Step::Found(record) => Ok(Begun::Found(record)),
        }
    }

    async fn find(&self, id: KeyId) -> Result<Option<Record>, StoreError> {
        let row = self
            .part(id)
            .get(&id)
            .and_then(|kept| kept.row(clock::now()));
        Ok(row.map(Record::from))
    }

    async fn renew(&self, lease: Lease, term: Duration) -> Result<Written, StoreError> {
        Ok(self.write(lease, |kept, now| {
            let until = clock::later(now, term);
            kept.expires_at = clock::later(
                until,
                kept.expires_at.saturating_duration_since(kept.lease_until),
            );
            kept.lease_until = until;
        }))
    }

    async fn complete(
        &self,
        lease: Lease,
        answer: &SealedAnswer,
        retention: Duration,
    ) -> Result<Written, StoreError> {
        Ok(self.write(lease, |kept, now| {
            kept.answer = Some(answer.clone());
            kept.expires_at = clock::later(now, retention);
        }))
    }

    async fn release(&self, lease: Lease) -> Result<Written, StoreError> {
        let mut part = self.part(lease.id);
        let standing = match part.get(&lease.id) {
            Some(kept) => kept.standing(lease, clock::now()),
            None => Written::Lost,
        };
        if standing == Written::Done {
            part.remove(&lease.id);
        }
        Ok(standing)
    }

    async fn sweep(&self, limit: usize) -> Result<usize, StoreError> {
        let now = clock::now();
        let mut swept = 0;
        for part in self.parts.iter() {
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            part.extract_if(|_, kept| kept.expires_at <= now)
                .take(limit - swept)
                .for_each(|_| swept += 1);
            if swept == limit {
                break;
            }
        }
        Ok(swept)
    }
}
