//! Feeds any header values of a request to what a server reads of it, and a client before it sends.
//!
//! Invariants: no panic; what is stripped is gone; what is written is never more than remains, or one unit.

#![no_main]

use std::time::Duration;

use http::{HeaderName, HeaderValue, Request};
use libfuzzer_sys::fuzz_target;
use mamparo::replay::ATTEMPT_HEADER;
use mamparo::wire::codec::Remaining;
use mamparo::wire::{CarriesDeadline, HttpWire};

const NAMES: [HeaderName; 3] = [
    HeaderName::from_static("x-request-timeout-ms"),
    HeaderName::from_static("grpc-timeout"),
    ATTEMPT_HEADER,
];

fuzz_target!(|input: (u64, Vec<(u8, Vec<u8>)>)| {
    let (nanos, fields) = input;
    let mut request = Request::new(());
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            let name = NAMES[usize::from(name) % NAMES.len()].clone();
            request.headers_mut().append(name, value);
        }
    }
    let wire = HttpWire::default();
    let _number: u32 = wire.attempt(&request);
    let _told = wire.read(&request).remaining();

    let remaining = Duration::from_nanos(nanos.max(1));
    wire.write(&mut request, remaining);
    let Some(Remaining::For(told)) = wire.read(&request).remaining() else {
        panic!("what was written is not there");
    };
    assert!(told <= remaining.max(Duration::from_millis(1)));
    wire.strip(&mut request);
    assert_eq!(wire.read(&request).remaining(), None);
});
