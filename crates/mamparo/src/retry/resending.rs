//! What is known from the first failure on.

use mamparo_core::ResponseHead;
use mamparo_core::budget::InFlight;

use super::state::Memory;

/// What an operation keeps once an attempt has failed; most keep nothing.
pub(super) struct Resending<S> {
    /// Makes the later attempts.
    pub(super) service: S,
    pub(super) memory: Memory,
    pub(super) last_response: Option<Box<ResponseHead>>,
    pub(super) in_flight: Option<InFlight>,
    /// Whether the current attempt has been sent before: then it is sent once more transparently.
    pub(super) sent: bool,
}

impl<S> Resending<S> {
    pub(super) fn new(service: S) -> Self {
        Self {
            service,
            memory: Memory::default(),
            last_response: None,
            in_flight: None,
            sent: false,
        }
    }
}
