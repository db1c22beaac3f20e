//! Shares that look drawn, and are the same in every run.

/// The golden ratio's fraction: its multiples fill the range from 0 to 1 evenly from the first few on.
const STEP: f64 = 0.618_033_988_749_894_9;

/// An endless list of shares from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread(f64);

impl Spread {
    /// The next share.
    pub(super) fn next(&mut self) -> f64 {
        let share = self.0;
        self.0 = (self.0 + STEP).fract();
        share
    }
}
