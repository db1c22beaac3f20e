//! One limit for several replicas: the trait of what keeps it, and how it is used.

use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::time::Duration;

use mamparo_core::{BoxError, InvalidSetting};
use sha2::{Digest, Sha256};

/// Keeps limits that several replicas share.
///
/// The rule is the generic cell rate algorithm, by the store's own clock: all that is kept of a key is when its whole burst is there again.
/// A step is atomic, and may be dropped at any moment: it was then done or not. How long it may take is for the layer: see
/// [`Replicas::answer_within`].
pub trait LimitStore: fmt::Debug + Send + Sync + 'static {
    /// Takes a cost, and more if there is; or nothing, if there is less than the cost.
    fn take(&self, ask: Ask) -> Taking<'_>;
}

/// What [`LimitStore::take`] returns.
pub type Taking<'a> = Pin<Box<dyn Future<Output = Result<Granted, BoxError>> + Send + 'a>>;

/// A request to take from a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Whose limit: a hash of the key; all zero for those that have none.
    pub key: [u8; 16],
    /// How many nanoseconds a cost of one takes.
    pub interval: u64,
    /// How much may pass at once.
    pub burst: u32,
    /// How much is needed, at most the burst.
    pub cost: u32,
    /// How much more would be of use.
    pub more: u32,
}

impl Ask {
    /// Decides what is granted, for a store that keeps in nanoseconds of its own clock when the whole burst is there again; returns
    /// that instant too, for it to be kept. `now` must be read while nobody else can decide.
    ///
    /// ```
    /// use mamparo::rate_limit::Ask;
    ///
    /// let ask = Ask { key: [0; 16], interval: 100, burst: 3, cost: 1, more: 9 };
    /// let (granted, full_at) = ask.grant(0, 1_000);
    /// assert_eq!((granted.taken, full_at), (3, 1_300));
    /// let (granted, full_at) = ask.grant(full_at, 1_050);
    /// assert_eq!((granted.taken, full_at), (0, 1_300));
    /// let (granted, full_at) = ask.grant(full_at, 1_150);
    /// assert_eq!((granted.taken, full_at), (1, 1_400));
    /// ```
    #[must_use]
    pub fn grant(&self, full_at: u64, now: u64) -> (Granted, u64) {
        let whole = self.interval.saturating_mul(u64::from(self.burst));
        // A clock that was set back keeps nobody out for longer than a burst takes.
        let behind = full_at.saturating_sub(now);
        let debt = behind.min(whole);
        let room = (whole - debt) / self.interval.max(1);
        let wanted = u64::from(self.cost.saturating_add(self.more));
        let taken = if room >= u64::from(self.cost) {
            room.min(wanted)
        } else {
            0
        };
        let debt = debt.saturating_add(taken.saturating_mul(self.interval));
        let granted = Granted {
            taken: u32::try_from(taken).unwrap_or(u32::MAX),
            full_in: Duration::from_nanos(debt),
        };
        let kept = taken == 0 && behind <= whole;
        let full_at = if kept {
            full_at
        } else {
            now.saturating_add(debt)
        };
        (granted, full_at)
    }
}

/// What was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// How much: at least the cost, or 0.
    pub taken: u32,
    /// When the whole burst is there again, by what was taken up to now; rounded down.
    pub full_in: Duration,
}

/// How several replicas share a limit.
///
/// ```
/// use mamparo::rate_limit::Replicas;
/// use std::time::Duration;
///
/// let replicas = Replicas::of(3).batch(8).answer_within(Duration::from_millis(20));
/// # let _ = replicas;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    pub(super) count: u32,
    pub(super) batch: u32,
    pub(super) answer_within: Duration,
    pub(super) ask_again_after: Duration,
}

impl Replicas {
    /// Shares a limit among so many: where the store is away, each lets that part of the rate and of the burst pass.
    #[must_use]
    pub const fn of(count: u32) -> Self {
        Self {
            count,
            batch: 1,
            answer_within: Duration::from_millis(50),
            ask_again_after: Duration::from_secs(1),
        }
    }

    /// Sets how much a replica takes at once, 1 by default: with more it asks the store less often, and calls are answered at once
    /// from what it has.
    ///
    /// Each replica may then hold one less than that, already paid for, and spend it later: in a stretch of time that much more may pass.
    #[must_use]
    pub const fn batch(mut self, cost: u32) -> Self {
        self.batch = cost;
        self
    }

    /// Sets how long the store may take to answer, 50 ms by default; then it counts as away.
    #[must_use]
    pub const fn answer_within(mut self, time: Duration) -> Self {
        self.answer_within = time;
        self
    }

    /// Sets after how long a store that is away is asked again, by one call, 1 s by default.
    #[must_use]
    pub const fn ask_again_after(mut self, time: Duration) -> Self {
        self.ask_again_after = time;
        self
    }

    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        for (setting, count) in [("replicas", self.count), ("batch", self.batch)] {
            if count == 0 {
                return Err(InvalidSetting::new(setting, count, "must be at least 1"));
            }
        }
        let times = [
            ("answer_within", self.answer_within),
            ("ask_again_after", self.ask_again_after),
        ];
        for (setting, time) in times {
            if time.is_zero() {
                return Err(InvalidSetting::new(setting, "0s", "must be above 0"));
            }
        }
        Ok(())
    }
}

/// A hash of a key that is the same in every replica of one build, and that nobody can steer.
pub(super) fn shared_key<K: Hash>(key: &K) -> [u8; 16] {
    let mut hasher = Stable(Sha256::new());
    key.hash(&mut hasher);
    let mut short = [0; 16];
    short.copy_from_slice(&hasher.0.finalize()[..16]);
    short
}

struct Stable(Sha256);

impl Hasher for Stable {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not reached: the hash is taken as a whole.
    fn finish(&self) -> u64 {
        0
    }
}
