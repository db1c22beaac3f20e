//! The state machine of one transaction: what a message means to it, and what is to be done.
//!
//! [`decide`] takes what is known of a transaction ([`Terms`], [`Progress`]), an [`Input`] and a [`Context`] (the instant, a
//! draw for the jitter, the policy), and returns a [`Decision`]: at most one conditional [`Write`], then the effects that
//! follow it, then perhaps one more input. A [`Run`] carries a message through such decisions to its end, one question at a
//! time, and says what to do next; whoever asks the store and the scheduler on its behalf may die between any two questions.
//! The engine, the property tests and the model checker all drive the same two.
//!
//! | state | what it means |
//! |---|---|
//! | [`State::InFlight`] | attempt n was sent; its answer is awaited |
//! | [`State::Scheduling`] | the next attempt and its instant are stored; its schedule may not exist yet |
//! | [`State::Scheduled`] | the schedule exists |
//! | [`State::Sending`] | the fire was accepted, the attempt is claimed; its request may not have left yet |
//! | [`State::Succeeded`], [`State::Failed`] | the end; nothing changes it |
//!
//! Four rules keep it right, and each is a [`Guard`] that the model checker takes away to see it fail:
//!
//! - Every write is conditional on state, both attempts and the schedule's number ([`Expect`]).
//! - A write that misses is not an answer: the row is read again, and the fresh decision counts.
//! - The attempt moves when it is claimed, before its request leaves, so that an answer always finds its attempt.
//! - An instant is drawn once, and stored in the write that makes it true; whoever comes later uses the stored one.
//!
//! ```
//! use mamparo_durable::machine::{Answer, Context, Input, Outcome, Record, State, Terms, TransactionId, Utc, decide};
//! use mamparo_durable::policy::Policy;
//!
//! let policy = Policy::default();
//! let now = Utc::from_millis(1_700_000_000_000)?;
//! let terms = Terms::new(TransactionId::new("payment-1")?, "payment", &policy, now);
//! let record = Record::in_flight(terms);
//!
//! let refused = Input::Answer(Answer::new(1, 0, Outcome::Refused).with_reason("CANCELLED"));
//! let context = Context::new(now, 0.0, &policy);
//! let decision = decide(&record.terms, &record.progress, &refused, &context);
//!
//! let write = decision.write.expect("a refusal before the last attempt schedules the next one");
//! assert_eq!(write.to.state, State::Scheduling);
//! assert_eq!(write.to.attempt_next, Some(2));
//! assert_eq!(write.to.next_fire_at, Some(now.plus(policy.business().base())));
//! # Ok::<(), mamparo_core::InvalidSetting>(())
//! ```

mod alert;
mod answer;
mod audit;
mod context;
mod decide;
mod decision;
mod fire;
mod guard;
mod input;
#[cfg(test)]
mod model;
mod operator;
mod reconcile;
mod record;
mod run;
mod schedule;
mod state;
#[cfg(test)]
mod tests;
mod text;
mod utc;

pub use alert::{Alert, AlertKind};
pub use audit::{AuditEvent, Cause};
pub use context::Context;
pub use decide::decide;
pub use decision::{Decision, Effect, Note, Write};
pub use guard::Guard;
pub use input::{Answer, Fire, Gate, Input, Outcome, Patience};
pub use record::{Expect, Progress, Record, Terms};
pub use run::{Ask, Reply, Run, Settle};
pub use schedule::{Schedule, idempotency_key, schedule_name};
pub use state::{End, State};
pub use text::{Label, TransactionId};
pub use utc::Utc;
