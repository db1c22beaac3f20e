use std::time::Duration;

use mamparo_core::clock;

use super::*;

#[test]
fn one_caller_is_let_through_in_each_interval() {
    let pulse = Pulse::new();
    let now = clock::now();
    assert!(pulse.is_due(now));
    assert!(!pulse.is_due(now));
    assert!(!pulse.is_due(now + RECHECK - Duration::from_micros(1)));
    assert!(pulse.is_due(now + RECHECK));
    assert!(!pulse.is_due(now + RECHECK));
}
