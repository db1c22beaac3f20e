//! How long a wait is, and when enough is enough.
//!
//! `wait(k) = min(base × factor^(k−1), cap) × (1 + u)`, with u uniform in [−jitter, +jitter]. For a retry after a refusal, k
//! is the number of the retry: 1 for attempt 2. With the defaults (2 h, ×2, 24 h, ±10 %) the first three retries come after
//! 2 h (1 h 48 to 2 h 12), 4 h (3 h 36 to 4 h 24) and 8 h (7 h 12 to 8 h 48). The jitter may go beyond the cap, to 26.4 h,
//! unless [`WaitBuilder::hard_cap`] trims it again.
//!
//! The draw is made once, in the application, and the instant that comes of it is stored: whoever makes the schedule again
//! makes the same one.
//!
//! - [`Wait`] is that formula; a [`Policy`] has one for refusals, one for technical failures and one for an open breaker.
//! - [`Policies`] picks the policy by kind of transaction, customer and reason of the refusal.
//! - With the feature `config`, `Policies::of_files` takes all of them from policy files.
//! - [`Adaptive`] stretches or shortens the waits of a kind by how often its retries succeed.

mod adaptive;
mod config;
#[cfg(feature = "config")]
mod file;
#[cfg(test)]
#[cfg(feature = "config")]
mod file_tests;
mod rules;
mod settings;
#[cfg(test)]
mod tests;
mod wait;

pub use adaptive::{Adaptive, MAX_KINDS};
pub use config::PolicyBuilder;
#[cfg(feature = "config")]
pub use file::PolicyFileError;
pub use rules::{MAX_RULES, Policies, Rule};
pub use settings::Policy;
pub use wait::{Wait, WaitBuilder};
