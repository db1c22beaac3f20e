//! Who waits for a message is woken: by what this process writes, by what others notify, by the next due instant, and by a poll.
//!
//! - [`Wake`] is where waiting tasks of this process are
//! - `hear` listens for what other engines write; one connection, made again when it is lost
//! - `tell` notifies them, many writes by one notification
//!
//! A notification is a hint: it may be lost, then the poll finds what it was about. It is sent after the commit, for inside of a
//! transaction it would make all commits of the database wait for each other.

mod hear;
mod ready;
mod tell;
mod waiters;

pub(crate) use hear::hear;
pub(crate) use ready::Ready;
pub(crate) use tell::tell;
pub(crate) use waiters::Wake;
