//! HTTP's answers, judged.
//!
//! [`Http`] is the classifier: which statuses and errors are failures, which may be sent again and on what
//! condition, and how long the server asks to wait. [`hint`] reads the server's wait; [`Quota`] says what is left of a server's
//! limit. [`GuardedBody`] keeps a
//! guard until the answer is over: a failure is final at the head, a good head stays open until its body ends,
//! breaks or is dropped.

mod body;
mod classify;
pub mod hint;
mod quota;

pub use body::GuardedBody;
pub use classify::{
    EXHAUSTED_HEADER, Http, HttpBuilder, HttpEnds, IDEMPOTENCY_KEY, MAX_LISTED_METHODS,
    MAX_LISTED_STATUSES,
};
pub use quota::{MAX_QUOTA_NAME_LEN, Quota, QuotaPolicy};

#[cfg(test)]
mod tests;
