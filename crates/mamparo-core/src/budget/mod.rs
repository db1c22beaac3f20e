//! Tokens that pay for resends, so that retries and hedges can't multiply the load of a struggling dependency.
//!
//! Every operation deposits a fraction of a token, every resend withdraws a whole one; with a ratio of 0.20, a
//! hundred operations pay for twenty resends. A small reserve, refilled every second, pays where there is little
//! traffic. One [`Budget`] belongs to one dependency and is shared by everything that resends to it: clones are
//! cheap and spend from the same balance.
//!
//! | cap | what it bounds | default |
//! |---|---|---|
//! | [`Cap::Traffic`] | resends ≤ `ratio` × operations + `min_per_second`, of which at most `burst` can be saved up | 0.20, 10, 100 |
//! | [`Cap::Concurrency`] | resends in flight, as a number or as a share of the operations in flight | none |
//! | [`Cap::Operation`] | resends of one operation, whatever their cause | none: `max_attempts` does this |
//! | [`Cap::Tenant`] | resends of one tenant, as a share of that tenant's own operations | none |
//!
//! The ratio is exact: integer arithmetic in billionths of a token, every withdrawal decided under one lock. The
//! path of an operation that needs no resend takes no lock and writes no memory that other threads write.
//!
//! A [`Withdrawal`] is a guard. It goes back to the budget when it is dropped, as when the caller cancels during the
//! backoff; [`Withdrawal::spend`] spends it at the moment the resend is sent, and [`InFlight::not_sent`] takes that
//! back where a layer further in refused to send it.
//!
//! A resend counts as in flight from its withdrawal, before its backoff, until its head or its error is there. A body
//! that is still being read asks for no more resends, so it is not counted.
//!
//! The scheme is that of Finagle's `RetryBudget` and of "Handling Overload" in Google's SRE book; the concurrency
//! share is Envoy's `retry_budget`.
//!
//! A [`Throttle`] is gRPC's own bound, of failures: used where a service config asks for it, besides the budget.
//!
//! ```
//! use mamparo_core::{Budget, clock};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let budget = Budget::builder().ratio(0.5).min_per_second(0).build()?;
//!
//! // Each operation deposits once and keeps the deposit until it ends.
//! let first = budget.deposit(None);
//! let second = budget.deposit(None);
//!
//! // One of them fails, and half a token each pays for one resend.
//! let withdrawal = budget.withdraw(clock::now(), None, 0)?;
//! assert!(budget.withdraw(clock::now(), None, 0).is_err());
//!
//! // Given up during the backoff: the token is back.
//! drop(withdrawal);
//! let in_flight = budget.withdraw(clock::now(), None, 0)?.spend();
//! // … the resend runs …
//! drop(in_flight);
//! assert_eq!(budget.consumed(), 1);
//! # drop((first, second));
//! # Ok(())
//! # }
//! ```

mod config;
mod error;
mod guard;
mod handle;
mod state;
mod tenant;
#[cfg(test)]
mod tests;
mod throttle;
mod traffic;

pub use config::{BudgetBuilder, MAX_PER_SECOND};
pub use error::{Cap, Exhausted};
pub use guard::{Deposit, InFlight, Withdrawal};
pub use handle::Budget;
pub use tenant::{TENANT_SLOTS, Tenant};
pub use throttle::Throttle;
pub use traffic::Traffic;
