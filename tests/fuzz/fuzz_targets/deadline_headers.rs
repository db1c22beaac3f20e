//! Feeds any field value to every form of a deadline header.
//!
//! Invariants: no panic; what is read and written again promises no more than was read, or one unit.

#![no_main]

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use libfuzzer_sys::fuzz_target;
use mamparo::wire::codec::{DeadlineHeader, Remaining};

fuzz_target!(|input: (u32, &[u8])| {
    let (seconds, bytes) = input;
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into());
    let Ok(value) = HeaderValue::from_bytes(bytes) else {
        return;
    };
    for header in every_form() {
        if let Ok(Remaining::For(told)) = header.read(&value, wall) {
            assert!(!told.is_zero());
            let again = header.read(&header.write(told, wall), wall);
            assert!(
                matches!(again, Ok(Remaining::For(again)) if again <= told),
                "{again:?} for {told:?}"
            );
        }
    }
});

fn every_form() -> impl Iterator<Item = DeadlineHeader> {
    let named = [
        DeadlineHeader::millis("x-millis"),
        DeadlineHeader::seconds("x-seconds"),
        DeadlineHeader::epoch_millis("x-epoch-millis"),
        DeadlineHeader::rfc3339("x-rfc3339"),
    ];
    let fixed = [
        DeadlineHeader::grpc_timeout(),
        DeadlineHeader::connect_timeout_ms(),
        DeadlineHeader::envoy_expected_timeout_ms(),
        DeadlineHeader::finagle(),
    ];
    named.into_iter().flatten().chain(fixed)
}
