//! How queues are called after a delay.

use std::time::Duration;

/// Writes a delay with the largest unit that leaves no fraction: `30s`, `1500ms`, `2h`.
pub(super) fn delay(delay: Duration) -> String {
    let millis = delay.as_millis();
    for (unit, length) in [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
    ] {
        if millis >= length && millis.is_multiple_of(length) {
            return format!("{}{unit}", millis / length);
        }
    }
    format!("{millis}ms")
}
