//! How long to wait before a resend.
//!
//! The wait grows by a constant factor up to a cap, and jitter then *shortens* it ([`Jitter::Around`] also lengthens it,
//! by a fifth at most). The order matters: when the cap is applied after the jitter, callers that failed together all wait
//! exactly the cap and come back together. Capped first, waits differ even when the cap is long reached.
//!
//! | jitter | the wait before resend *n*, where *c* = min(cap, base × factor^(n−1)) |
//! |---|---|
//! | [`Jitter::Full`] (default) | uniform in 0 ..= *c*: spreads best |
//! | [`Jitter::Equal`] | uniform in *c*/2 ..= *c*: never returns at once |
//! | [`Jitter::Decorrelated`] | uniform in base ..= min(cap, 3 × the previous wait): grows with what was really waited |
//! | [`Jitter::Around`] | uniform in 0.8 *c* ..= 1.2 *c*, as gRPC's retries wait (gRFC A6): the one that goes beyond the cap |
//! | [`Jitter::None`] | *c*: for tests, and for callers that are alone |
//!
//! The names are those of the AWS Architecture Blog, "Exponential Backoff And Jitter" (2015). The one difference:
//! its decorrelated wait is drawn first and capped afterwards, so that two of three waits end on the cap; here the
//! range is capped first.
//!
//! A server's own hint (`Retry-After`) is not shortened by jitter, so it doesn't pass through here.
//!
//! ```
//! use mamparo_core::{Backoff, Jitter};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), mamparo_core::InvalidSetting> {
//! let backoff = Backoff::builder()
//!     .base(Duration::from_millis(50))
//!     .cap(Duration::from_secs(1))
//!     .jitter(Jitter::Equal)
//!     .build()?;
//! let mut rng = fastrand::Rng::new();
//!
//! let first = backoff.wait(1, Duration::ZERO, &mut rng);
//! assert!(first >= Duration::from_millis(25) && first <= Duration::from_millis(50));
//! let second = backoff.wait(2, first, &mut rng);
//! assert!(second >= Duration::from_millis(50) && second <= Duration::from_millis(100));
//! # Ok(())
//! # }
//! ```

mod config;
#[cfg(test)]
mod tests;
mod wait;

pub use config::{BackoffBuilder, MAX_CAP};
pub use wait::{Backoff, Jitter};
