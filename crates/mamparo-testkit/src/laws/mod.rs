//! The laws that every layer must keep, as assertions over any layer.
//!
//! [`Laws`] knows how to make a request and an answer; each law takes a closure that puts a fresh layer
//! around an [`Inner`], drives it through hundreds of calls in paused time, and panics with a sentence when
//! the law is broken. [`Laws::assert_all`] asserts all but the one that holds for gates only.
//!
//! - [`assert_passes_a_healthy_call`](Laws::assert_passes_a_healthy_call): one call, one send, no wait
//! - [`assert_strict_readiness`](Laws::assert_strict_readiness): each send goes to an instance that is ready
//! - [`assert_clone_is_not_ready`](Laws::assert_clone_is_not_ready): readiness is not cloned
//! - [`assert_readiness_error_ends`](Laws::assert_readiness_error_ends): a broken inner ends the call
//! - [`assert_idle_holds_nothing`](Laws::assert_idle_holds_nothing): ready but never called takes no place
//! - [`assert_holds_no_slot_while_waiting`](Laws::assert_holds_no_slot_while_waiting): nor does a backoff
//! - [`assert_drop_releases`](Laws::assert_drop_releases), [`assert_panic_releases`](Laws::assert_panic_releases)
//! - [`assert_wakes`](Laws::assert_wakes), [`assert_last_waker_is_woken`](Laws::assert_last_waker_is_woken)
//! - [`assert_gate`](Laws::assert_gate): a gate is ready although the inner is not
//!
//! ```
//! use mamparo_testkit::laws::Laws;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! # tokio::time::pause();
//! Laws::plain().assert_all(|inner| inner).await; // the layer that does nothing keeps them all
//! # }
//! ```

mod case;
mod readiness;
mod release;
#[cfg(test)]
mod tests;
mod waking;

pub use case::{Inner, Laws, Subject};
