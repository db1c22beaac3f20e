//! The last so many calls.

use mamparo_core::breaker::Rates;

use super::Bad;
use super::shards::Shards;
use crate::sync::{AtomicU64, Ordering};

/// How many calls a block tells of: a bit each for failed and for slow, and half a word for the block's place.
const BLOCK: u64 = 16;

/// As many blocks as other threads can be ahead of one that is about to write.
const AHEAD: u64 = 1 << 16;

/// The calls that ended, in order: where in it something went wrong.
///
/// A call that goes well takes no place by itself: it is counted, and moves on whatever goes wrong after it. So the
/// order is that of the failures, exact among themselves, with as many good calls between as there were.
#[derive(Debug)]
pub(in super::super) struct CountWindow {
    /// How many calls it holds.
    calls: u64,
    good: Shards<1>,
    /// How many calls did not go well, ever.
    bad: AtomicU64,
    /// Where the epoch began.
    start: AtomicU64,
    blocks: Box<[AtomicU64]>,
}

impl CountWindow {
    pub(super) fn new(calls: u32, spread: bool) -> Self {
        let calls = u64::from(calls);
        // One more than the whole blocks at either end.
        let blocks = calls / BLOCK + 2;
        Self {
            calls,
            good: Shards::new(spread),
            bad: AtomicU64::new(0),
            start: AtomicU64::new(0),
            blocks: (0..blocks).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    #[inline]
    pub(super) fn good(&self) {
        self.good.own()[0].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn bad(&self, epoch: u64, bad: Bad) {
        let place = self.place(epoch);
        let bit = place % BLOCK;
        let bits = u64::from(bad.failed) << bit | u64::from(bad.slow) << (BLOCK + bit);
        let number = number(place);
        let block = self.block(place);
        let mut seen = block.load(Ordering::Relaxed);
        loop {
            // Numbers wrap around, so that later is what is a little ahead; anything else was left here long ago.
            let next = match (seen >> 32).wrapping_sub(number) & u64::from(u32::MAX) {
                0 => seen | bits,
                ahead if ahead < AHEAD => return,
                _ => number << 32 | bits,
            };
            // The strictest order: of two threads that each add and then add up, one must see both.
            match block.compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => seen = changed,
            }
        }
    }

    /// Takes the next place. No two calls get the same: who takes a later one sees all good calls that the earlier saw.
    fn place(&self, epoch: u64) -> u64 {
        let mut bad = self.bad.load(Ordering::Acquire);
        loop {
            let place = self.origin(epoch) + self.good_calls() + bad;
            let next = bad + 1;
            match self
                .bad
                .compare_exchange_weak(bad, next, Ordering::SeqCst, Ordering::Acquire)
            {
                Ok(_) => return place,
                Err(changed) => bad = changed,
            }
        }
    }

    pub(super) fn rates(&self, epoch: u64, minimum: u64) -> Rates {
        let start = self.start.load(Ordering::SeqCst);
        let next = self.next(epoch);
        let calls = next.saturating_sub(start).min(self.calls);
        let (mut failures, mut slow) = (0, 0);
        let mut place = next - calls;
        while place < next {
            let end = (place / BLOCK + 1) * BLOCK;
            let (found_failed, found_slow) = self.found(place, end.min(next));
            failures += found_failed;
            slow += found_slow;
            place = end;
        }
        Rates::new(calls, failures, slow, minimum)
    }

    /// Counts what failed and what was slow at some places of one block.
    fn found(&self, from: u64, to: u64) -> (u64, u64) {
        let block = self.block(from).load(Ordering::SeqCst);
        if block >> 32 != number(from) {
            return (0, 0);
        }
        let mask = ((1 << (to - from)) - 1) << (from % BLOCK);
        let count = |bits: u64| u64::from((bits & mask).count_ones());
        (count(block), count(block >> BLOCK))
    }

    pub(super) fn begin(&self, epoch: u64) {
        self.start.store(self.next(epoch), Ordering::SeqCst);
    }

    /// Returns the place that the next call would take.
    fn next(&self, epoch: u64) -> u64 {
        let bad = self.bad.load(Ordering::SeqCst);
        self.origin(epoch) + self.good_calls() + bad
    }

    /// Each epoch's places lie a whole window after any earlier one's.
    fn origin(&self, epoch: u64) -> u64 {
        epoch * self.calls
    }

    fn good_calls(&self) -> u64 {
        let counts = self.good.all().map(|line| &line[0]);
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn block(&self, place: u64) -> &AtomicU64 {
        let blocks = self.blocks.len() as u64;
        &self.blocks[(place / BLOCK % blocks) as usize]
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.good.bytes() + size_of_val(&*self.blocks)
    }
}

/// Returns what a block stores of its place.
const fn number(place: u64) -> u64 {
    (place / BLOCK) & u32::MAX as u64
}
