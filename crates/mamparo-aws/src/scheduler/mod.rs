//! Schedules in EventBridge Scheduler: one-time, in UTC, in a group of their own, deleted once they have fired.
//!
//! The service promises the minute and takes no instant that is past. So what is due in less than a minute goes straight to the queue
//! of fires, with a delay; and since `at(…)` has whole seconds, an instant is rounded up, for a fire must never come early. One that does
//! come early is put back by the queue until it is due.
//!
//! A name that exists is not an error until it is read back: the same instant and payload is the schedule that was asked for, others are
//! a conflict, and none at all is a schedule that is just being made or deleted, and is tried again.

mod create;
mod event_bridge;
mod expression;
mod recalled;

pub(crate) use create::count;
pub(crate) use event_bridge::EventBridge;
pub(crate) use recalled::Recalled;
