//! What a backend provides: a store, a scheduler, queues, and perhaps all of it in one transaction.
//!
//! | trait | answers | its verbs |
//! |---|---|---|
//! | [`Store`] | is it still wanted? | begin, load, write, and what people ask of it |
//! | [`Scheduler`] | when? | create and delete a schedule |
//! | [`Queue`] | who handles what comes in? | publish, take, acknowledge, release, bury; and the dead letters |
//! | [`Outbox`] | all of a step at once | commit, postpone |
//!
//! Every method says what happens when it is called twice, because each of them is: whoever called it may have died before it
//! heard the answer. All of them may be called by many tasks at once; a backend gathers what comes together into one
//! commit, since a commit costs as much for one step as for a thousand. One step that misses or is refused never stops the
//! others.
//!
//! A backend that keeps everything in one database has an [`Outbox`], and a handler's whole step is one transaction. Where
//! store, scheduler and queues are different services there is none: the handlers ask them one after the other, and the order
//! of the machine's decisions makes a crash between any two harmless.
//!
//! The feature `conformance` holds the suite that every backend runs.

mod error;
mod message;
mod outbox;
mod parts;
mod queue;
mod scheduler;
mod store;
#[cfg(test)]
mod tests;
mod wire;

pub use error::{BackendError, BoxFuture, Trouble};
pub use message::{Message, QueueName, Request};
pub use outbox::{Committed, Outbox, PostponeDue, Step};
pub use parts::Backend;
pub use queue::{DeadLetter, Delivery, Depth, Queue, Receipt};
pub use scheduler::{Created, Scheduler};
pub use store::{Begun, Census, Count, Filter, NewTransaction, Store, Written};
