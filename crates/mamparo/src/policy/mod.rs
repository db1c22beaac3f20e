//! The policies of all dependencies in one file: checked before the program starts, and explained in numbers.
//!
//! Set alone, each pattern can be right and all of them together wrong: a timeout that knows nothing of the attempts that
//! must fit into it, a budget that bounds nothing. [`Policies::load`] refuses what contradicts itself, all of it at once, each
//! [`Problem`] with its file and line, the numbers, and a remedy. What comes from a default is never refused: it gives way
//! to what was written.
//!
//! - `[dependency.NAME]` is the policy of a dependency, `[profile.NAME]` what several share; a profile may inherit from
//!   another, and all are merged field by field
//! - `[server]` is the server's own policy: what it refuses, and how it stops ([`ServerPolicy`])
//! - `[service]` says of whom these are the dependencies, and `[[external_retrier]]` who else sends requests again
//! - a variable of the environment, `MAMPARO__CATALOG__RETRY__MAX_ATTEMPTS`, goes before all files
//! - durations are texts such as `"250ms"`, and `"none"` spells out that there is no limit
//!
//! # Reload
//!
//! [`Policies::reload`] loads the same files and the same environment again. If anything is wrong, all of it is refused and nothing
//! changes; a later reload may succeed. Otherwise what changed changes, and nothing else:
//!
//! - services, handles and listeners that are in use go on, and see new settings at the next call; calls in flight end under those
//!   that they began with
//! - a breaker stays open or closed with its failures so far, a bulkhead keeps who is in it or waits, a rate limit what was used,
//!   a budget its tokens; only a window of another shape begins empty
//! - [`Policies::watch`] reloads when a file changes, and `Policies::reload_on_hangup` when the process is sent `SIGHUP`
//! - what was set by hand on a stack stays, and so do its telemetry, observer and fallback
//! - a dependency that is named no more serves on as it is; named again while somebody uses it, it has its state
//! - the connect timeout of a client that was made already stays, and to change a protocol is refused: these need a restart
//!
//! # Example
//!
//! ```
//! use mamparo::policy::{Format, Policies};
//!
//! let document = r#"
//! [profile.internal]
//! deadline = "2s"
//! retry = { max_attempts = 3, backoff = { base = "100ms" } }
//!
//! [dependency.catalog]
//! profile = "internal"
//! breaker = { failure_rate = 0.5 }
//! "#;
//! let policies = Policies::loader().text("policies.toml", document, Format::Toml).load()?;
//! let catalog = policies.dependency("catalog")?.http()?;
//! assert_eq!(catalog.worst_case().attempts, 3);
//!
//! let greedy = r#"
//! [dependency.catalog]
//! deadline = "2s"
//! retry = { max_attempts = 4, attempt_timeout = "1s" }
//! "#;
//! let refused = Policies::loader().text("greedy.toml", greedy, Format::Toml).load().unwrap_err();
//! assert_eq!(
//!     refused.problems()[0].message,
//!     "4 × 1000 ms + 700 ms = 4700 ms does not fit 2000 ms: 1 attempt fits, no retry",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod check;
mod defer;
mod describe;
mod format;
mod live;
mod loader;
mod outline;
mod policies;
mod problem;
mod resolve;
mod schema;
mod server;
mod server_keys;
mod service;
pub mod snapshot;
mod source;
mod tree;
mod view;
mod watch;

pub use check::{Plan, Segment};
pub use defer::{Defer, DeferWait};
pub use format::Format;
pub use loader::Loader;
pub use outline::Outline;
pub use policies::{OtherProtocol, Policies, Policy, Reloads, UnknownDependency};
pub use problem::{InvalidPolicies, MAX_PROBLEMS, Problem, Severity};
pub use schema::json_schema;
pub use server::ServerPolicy;
pub use service::{ExternalRetrier, Service};
pub use snapshot::Snapshot;
pub use tree::Origin;
pub use view::Effective;
pub use watch::{Watch, WatchBuilder};

#[cfg(test)]
mod reload_tests;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod settings_tests;
#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod watch_tests;
