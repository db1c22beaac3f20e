//! A breaker as its caller sees it.

use std::sync::Arc;

use super::circuit::Circuit;
use super::journal::Journal;
use super::*;

#[test]
fn a_keyed_breaker_takes_a_kilobyte_at_most() {
    for window in [Window::calls(512), Window::default()] {
        let policy = BreakerPolicy::builder().failure_rate(0.5).window(window);
        let policy = Arc::new(policy.build().unwrap());
        let key = Some(Arc::from("a.rather.long.name.of.a.host.example.org:8443"));
        let circuit = Circuit::new(policy, Arc::new(Journal::new()), key, false);
        assert!(
            circuit.bytes() <= 1024,
            "{} bytes for {window:?}",
            circuit.bytes()
        );
    }
}
