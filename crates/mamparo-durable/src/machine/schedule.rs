//! What the scheduler keeps, and the names that make doing a thing twice the same as doing it once.

use mamparo_core::fnv;

use super::{TransactionId, Utc};

/// As long as a schedule's name may be: what the scheduler of AWS takes.
const MAX_NAME: usize = 64;

/// One wait, as the scheduler keeps it. Its payload is the fire of (attempt, seq).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The attempt that it fires.
    pub attempt: u32,
    /// Which schedule of that attempt it is.
    pub seq: u32,
    /// When.
    pub fire_at: Utc,
}

impl Schedule {
    /// Returns its name, the same whenever it is made again.
    #[must_use]
    pub fn name(&self, id: &TransactionId) -> String {
        schedule_name(id, self.attempt, self.seq)
    }
}

/// Returns the name of a schedule: `retry-{id}-{attempt}`, with `-{seq}` from the second schedule of an attempt on.
///
/// Different schedules have different names, of at most 64 characters out of letters, digits, `-`, `_` and `.`. An id that is
/// too long, has other characters, or ends in `-` and digits, which could be read as an attempt, is replaced by a hash.
///
/// ```
/// use mamparo_durable::machine::{TransactionId, schedule_name};
/// let name = |id, attempt, seq| TransactionId::new(id).map(|id| schedule_name(&id, attempt, seq));
/// assert_eq!(name("pay_7f", 2, 0)?, "retry-pay_7f-2");
/// assert_eq!(name("pay_7f", 2, 1)?, "retry-pay_7f-2-1");
/// assert_eq!(name("pay-2", 1, 0)?, "retry-h.dfd41fa78871079a75ffa5aaddae7ca2-1");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[must_use]
pub fn schedule_name(id: &TransactionId, attempt: u32, seq: u32) -> String {
    let tail = match seq {
        0 => format!("-{attempt}"),
        seq => format!("-{attempt}-{seq}"),
    };
    let id = id.as_str();
    let plain = id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let fits = "retry-".len() + id.len() + tail.len() <= MAX_NAME;
    if plain && fits && !ends_like_a_tail(id) {
        return format!("retry-{id}{tail}");
    }
    // A dot is in no plain id, so that no hash is taken for one. Two halves: one of them alone could collide by chance.
    let reversed: Vec<u8> = id.bytes().rev().collect();
    format!(
        "retry-h.{:016x}{:016x}{tail}",
        fnv::hash(id.as_bytes()),
        fnv::hash(&reversed)
    )
}

fn ends_like_a_tail(id: &str) -> bool {
    id.rsplit_once('-')
        .is_some_and(|(_, last)| !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the key under which every send of one attempt goes out, so that the dependency can drop a duplicate.
///
/// ```
/// use mamparo_durable::machine::{TransactionId, idempotency_key};
/// assert_eq!(idempotency_key(&TransactionId::new("payment-1")?, 2), "payment-1#2");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[must_use]
pub fn idempotency_key(id: &TransactionId, attempt: u32) -> String {
    format!("{id}#{attempt}")
}
