//! How far an absolute deadline is believed, when the clocks of two machines disagree.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mamparo_core::InvalidSetting;

use super::set::Read;
use super::told::Remaining;

/// How late an absolute deadline may be before a request is rejected: half a second.
///
/// Machines that keep time by NTP disagree by milliseconds; one that has just woken or booted, by a few hundred.
pub const DEFAULT_TOLERATED: Duration = Duration::from_millis(500);

/// The share of requests with an absolute deadline that may be rejected as expired: 10 %.
///
/// Enough to shed what is truly late; a peer whose clock is wrong keeps nine requests of ten.
pub const DEFAULT_REJECT_PERCENT: u32 = 10;

/// The most rejections that can be saved up while no request is late, to be spent at once.
pub const MAX_SAVED_REJECTIONS: u32 = 10;

/// One rejection costs as many points as a hundred requests earn at one percent.
const REJECTION: u32 = 100;

/// Decides whether a request that an absolute header calls expired is rejected.
///
/// A relative header cannot be wrong about the time, so that it is always believed. An absolute one is rejected only if
/// it is late by more than the tolerated skew, no relative header says that time remains, and the share of
/// rejections allows it. Counted exactly: of any run of `n` requests with an absolute header, at most `percent` × `n` +
/// [`MAX_SAVED_REJECTIONS`] are rejected, and from the start never more than `percent` × `n`.
///
/// Keep one in the layer, shared by all its services. While no request is late it only reads its counter.
///
/// ```
/// use mamparo::wire::codec::{Admission, DeadlineHeader, DeadlineHeaders, Skew};
/// use std::time::{Duration, SystemTime};
///
/// let skew = Skew::new(Duration::from_millis(500), 50)?;
/// let accepted = DeadlineHeaders::from(DeadlineHeader::epoch_millis("x-request-deadline")?);
/// let mut headers = http::HeaderMap::new();
/// headers.insert("x-request-deadline", "1000".parse().unwrap());
/// let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
///
/// // Every second request may be lost to a peer whose clock is a minute behind.
/// let read = accepted.read_all(&headers, wall);
/// assert_eq!(skew.admit(&read), Admission::Doubted(None));
/// assert_eq!(skew.admit(&read), Admission::Expired);
/// assert_eq!(skew.admit(&read), Admission::Doubted(None));
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Debug)]
pub struct Skew {
    tolerated: Duration,
    percent: u32,
    points: AtomicU32,
}

/// What becomes of a request, by what its deadline headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// Nothing remains: reject it, and do not call the handler.
    Expired,
    /// Run it within this time; `None` if the caller sets no limit.
    Within(Option<Duration>),
    /// An absolute header calls it expired and is not believed: run it within what a relative one leaves, or else
    /// within the server's own limit, and report it.
    Doubted(Option<Duration>),
}

impl Skew {
    /// Makes the rule from the tolerated skew and the percentage of requests that may be rejected.
    ///
    /// 0 % never rejects, 100 % always believes what is later than the tolerated skew.
    ///
    /// # Errors
    ///
    /// Refuses more than 100 %.
    pub fn new(tolerated: Duration, percent: u32) -> Result<Self, InvalidSetting> {
        if percent > 100 {
            let reason = "must be at most 100: it is a percentage of requests";
            return Err(InvalidSetting::new("skew reject percent", percent, reason));
        }
        Ok(Self {
            tolerated,
            percent,
            points: AtomicU32::new(0),
        })
    }

    /// Decides about one request, and counts it if it carries an absolute deadline.
    #[must_use]
    pub fn admit(&self, read: &Read<'_>) -> Admission {
        let Some(absolute) = read.absolute else {
            return Self::believe(read.relative);
        };
        self.earn();
        if absolute.remaining() != Remaining::Expired {
            return Self::believe(read.remaining());
        }
        match read.relative {
            Some(Remaining::Expired) => Admission::Expired,
            Some(Remaining::For(time)) => Admission::Doubted(Some(time)),
            Some(Remaining::Infinite) | None => {
                if absolute.late() > self.tolerated && self.spend() {
                    Admission::Expired
                } else {
                    Admission::Doubted(None)
                }
            }
        }
    }

    fn believe(remaining: Option<Remaining>) -> Admission {
        match remaining {
            Some(Remaining::Expired) => Admission::Expired,
            Some(Remaining::For(time)) => Admission::Within(Some(time)),
            Some(Remaining::Infinite) | None => Admission::Within(None),
        }
    }

    fn earn(&self) {
        const FULL: u32 = REJECTION * MAX_SAVED_REJECTIONS;
        self.change(|points| (points < FULL).then(|| points + self.percent));
    }

    fn spend(&self) -> bool {
        self.change(|points| points.checked_sub(REJECTION))
    }

    /// Relaxed, because the counter guards nothing but itself. A change that is refused writes nothing.
    fn change(&self, change: impl FnMut(u32) -> Option<u32>) -> bool {
        let order = Ordering::Relaxed;
        self.points.fetch_update(order, order, change).is_ok()
    }
}

impl Default for Skew {
    fn default() -> Self {
        Self {
            tolerated: DEFAULT_TOLERATED,
            percent: DEFAULT_REJECT_PERCENT,
            points: AtomicU32::new(0),
        }
    }
}
