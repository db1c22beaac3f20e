//! The lowest latency that is remembered.

use std::time::Duration;

use mamparo_core::clock::Instant;

/// Into so many parts the memory is cut; each is forgotten as a whole.
const PARTS: usize = 10;

/// The lowest mean latency of a window, over a time that slides by a tenth of itself.
///
/// Constant memory: the lowest of each part, and of one more, so that nothing is forgotten early.
#[derive(Debug)]
pub(super) struct Baseline {
    part: Duration,
    lowest: [Option<Duration>; PARTS + 1],
    /// The part that is being filled, and when it began.
    newest: usize,
    since: Option<Instant>,
}

impl Baseline {
    pub(super) fn new(memory: Duration) -> Self {
        Self {
            part: memory / PARTS as u32,
            lowest: [None; PARTS + 1],
            newest: 0,
            since: None,
        }
    }

    /// Takes a window's mean latency in, and returns the lowest that is remembered then.
    pub(super) fn observe(&mut self, now: Instant, latency: Duration) -> Duration {
        self.forget(now);
        let newest = &mut self.lowest[self.newest];
        *newest = Some(newest.map_or(latency, |lowest| lowest.min(latency)));
        let lowest = self.lowest.iter().flatten().min();
        lowest.copied().unwrap_or(latency)
    }

    fn forget(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let gone = now.saturating_duration_since(since).as_nanos() / self.part.as_nanos().max(1);
        if gone == 0 {
            return;
        }
        if gone > PARTS as u128 {
            self.lowest = [None; PARTS + 1];
            self.since = Some(now);
            return;
        }
        for _ in 0..gone {
            self.newest = (self.newest + 1) % self.lowest.len();
            self.lowest[self.newest] = None;
        }
        self.since = Some(since + self.part * gone as u32);
    }
}
