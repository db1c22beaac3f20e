//! The backend in memory keeps what the traits promise.
#![cfg(feature = "conformance")]

use mamparo_core::clock::SystemClock;
use mamparo_durable::backend::Backend;
use mamparo_durable::conformance::REDELIVERY_LIMIT;
use mamparo_durable::memory::Memory;

async fn fresh() -> (Backend, ()) {
    let memory = Memory::new(SystemClock).redelivery_limit(REDELIVERY_LIMIT);
    (memory.backend(), ())
}

mamparo_durable::conformance!(fresh);
