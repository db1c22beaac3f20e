//! The headers that a server reads, or a client writes: bounded and in order.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, HeaderName, MaxSizeReached};
use mamparo_core::InvalidSetting;

use super::header::DeadlineHeader;
use super::told::{Lead, Remaining, Told};

/// The most deadline headers that one set may hold.
pub const MAX_DEADLINE_HEADERS: usize = 8;

/// An ordered set of deadline headers, at most [`MAX_DEADLINE_HEADERS`]; by default `x-request-timeout-ms` alone.
///
/// An empty set reads and writes nothing: an edge that ignores what its callers ask for.
///
/// ```
/// use mamparo::wire::codec::{DeadlineHeader, DeadlineHeaders, Remaining};
/// use std::time::{Duration, SystemTime};
///
/// let set = DeadlineHeaders::from(DeadlineHeader::connect_timeout_ms());
/// let mut headers = http::HeaderMap::new();
/// set.write_all(&mut headers, Duration::from_secs(2), SystemTime::UNIX_EPOCH)?;
/// assert_eq!(headers["connect-timeout-ms"], "2000");
/// # Ok::<(), http::header::MaxSizeReached>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineHeaders {
    headers: Arc<[DeadlineHeader]>,
}

impl DeadlineHeaders {
    /// Makes a set of these headers, in this order.
    ///
    /// # Errors
    ///
    /// Refuses more than [`MAX_DEADLINE_HEADERS`], and the same name twice: it could mean two things.
    pub fn new(headers: impl IntoIterator<Item = DeadlineHeader>) -> Result<Self, InvalidSetting> {
        const SETTING: &str = "deadline headers";
        let mut set: Vec<DeadlineHeader> = Vec::new();
        for header in headers {
            if set.len() == MAX_DEADLINE_HEADERS {
                let reason = "must be at most 8 headers: each is looked for in every request";
                return Err(InvalidSetting::new(SETTING, "more than 8", reason));
            }
            if set.iter().any(|other| other.name() == header.name()) {
                let reason = "must not be named twice: one header has one form";
                return Err(InvalidSetting::new(SETTING, header.name(), reason));
            }
            set.push(header);
        }
        Ok(Self {
            headers: set.into(),
        })
    }

    /// Iterates over the headers, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &DeadlineHeader> {
        self.headers.iter()
    }

    /// Reads every value of every header of the set, without allocating; malformed ones are passed over and reported.
    #[must_use]
    pub fn read_all(&self, headers: &HeaderMap, wall: SystemTime) -> Read<'_> {
        let mut read = Read::default();
        for header in &*self.headers {
            for value in headers.get_all(header.name()) {
                match header.told(value, wall) {
                    Ok(told) => read.take(told),
                    Err(_) => read.malformed = read.malformed.or(Some(header.name())),
                }
            }
        }
        read
    }

    /// Removes every header of the set, all values: what was consumed here is stale for the next hop.
    pub fn strip(&self, headers: &mut HeaderMap) {
        for header in &*self.headers {
            headers.remove(header.name());
        }
    }

    /// Writes every header of the set, in place of any value that is there.
    ///
    /// # Errors
    ///
    /// If the map is as full as a header map can be. No stale value is left behind then either.
    pub fn write_all(
        &self,
        headers: &mut HeaderMap,
        remaining: Duration,
        wall: SystemTime,
    ) -> Result<(), MaxSizeReached> {
        let write = |headers: &mut HeaderMap| {
            self.headers.iter().try_for_each(|header| {
                let value = header.write(remaining, wall);
                headers.try_insert(header.name(), value).map(drop)
            })
        };
        // A full map takes no value even in place of another, so make room, and leave nothing stale behind.
        write(headers).or_else(|_| {
            self.strip(headers);
            write(headers)
        })
    }

    /// Returns the headers of this set that `other` has not.
    pub(in crate::wire) fn without(&self, other: &Self) -> Self {
        let has = |name| other.iter().any(|header| header.name() == name);
        let headers = self.iter().filter(|header| !has(header.name()));
        Self {
            headers: headers.cloned().collect(),
        }
    }
}

impl Default for DeadlineHeaders {
    fn default() -> Self {
        DeadlineHeader::request_timeout_ms().into()
    }
}

impl From<DeadlineHeader> for DeadlineHeaders {
    fn from(header: DeadlineHeader) -> Self {
        Self {
            headers: [header].into(),
        }
    }
}

/// What the deadline headers of one request say, taken together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read<'a> {
    pub(super) relative: Option<Remaining>,
    pub(super) absolute: Option<Lead>,
    malformed: Option<&'a HeaderName>,
}

impl<'a> Read<'a> {
    /// Returns the shortest time that any header leaves; `None` if none could be read.
    ///
    /// An absolute header counts as it stands: ask [`Skew`](super::Skew) whether to believe that it has expired.
    #[must_use]
    pub fn remaining(&self) -> Option<Remaining> {
        let absolute = self.absolute.map(Lead::remaining);
        [self.relative, absolute].into_iter().flatten().min()
    }

    /// Tells whether the shortest time comes from an absolute header, and no relative one says the same.
    #[must_use]
    pub fn is_absolute(&self) -> bool {
        self.remaining() != self.relative
    }

    /// Names the first header that had a malformed value, if any; such a value is otherwise ignored.
    #[must_use]
    pub fn malformed(&self) -> Option<&'a HeaderName> {
        self.malformed
    }

    /// Tells whether there was no deadline header at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.relative.is_none() && self.absolute.is_none() && self.malformed.is_none()
    }

    fn take(&mut self, told: Told) {
        match told {
            Told::Relative(remaining) => {
                self.relative = Some(
                    self.relative
                        .map_or(remaining, |least| least.min(remaining)),
                );
            }
            Told::Absolute(lead) => {
                self.absolute = Some(self.absolute.map_or(lead, |least| least.min(lead)));
            }
        }
    }
}
