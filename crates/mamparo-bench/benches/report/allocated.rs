//! The counts that `allocations` left.

use std::collections::HashMap;
use std::fs;

use crate::cases::COUNTS;

/// What one call allocates.
#[derive(Clone, Copy)]
pub(super) struct Allocated {
    pub(super) allocations: i64,
    /// The call's future and all that it allocates, in bytes.
    pub(super) in_flight: i64,
}

/// The counts by the case's name; none when `allocations` has not run.
pub(super) fn read() -> HashMap<String, Allocated> {
    let counts = fs::read_to_string(COUNTS).unwrap_or_default();
    counts.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(String, Allocated)> {
    let mut fields = line.split('\t').skip(1);
    let name = fields.next()?.to_owned();
    let allocated = Allocated {
        allocations: fields.next()?.parse().ok()?,
        in_flight: fields.next()?.parse().ok()?,
    };
    Some((name, allocated))
}
