//! How many interleavings are tried out, and which.

/// How often each test runs in either way.
const ROUNDS: usize = 500;

/// Where the running thread is held up, in the second way.
const DELAYS: usize = 3;

/// Runs a test in many interleavings: random ones, and those that differ from one thread after the other at few places, where
/// most faults hide (Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding bugs", 2010).
pub(super) fn try_out(test: impl Fn() + Clone + Send + Sync + 'static) {
    shuttle::check_random(test.clone(), ROUNDS);
    shuttle::check_pct(test, ROUNDS, DELAYS);
}
