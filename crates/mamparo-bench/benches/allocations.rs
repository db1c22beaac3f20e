//! Counts the heap allocations of each case, and leaves the counts where `speed` finds them for its table.

mod cases;
mod grpc;

use std::alloc::System;
use std::fmt::Write as _;
use std::fs;

use cases::{COUNTS, Case, groups, latency};
use mamparo_core::BoxError;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Calls before anything is counted: what is made once, lazily, belongs to no call.
const WARM_UP: u64 = 1_000;

const CALLS: u64 = 10_000;

fn main() -> Result<(), BoxError> {
    let mut counts = String::new();
    let mut groups = groups();
    groups.push(grpc::group()?);
    for group in groups {
        for case in &group.cases {
            let (allocations, bytes) = count(case)?;
            let in_flight = case.future as u64 + bytes;
            writeln!(
                counts,
                "{}\t{}\t{allocations}\t{in_flight}",
                group.name, case.name
            )?;
        }
    }
    fs::write(COUNTS, counts)?;
    Ok(())
}

/// Allocations and allocated bytes of one call: the difference between two runs, so that a run's own are left out.
fn count(case: &Case) -> Result<(u64, u64), BoxError> {
    let mut work = case.make()?;
    work(WARM_UP);
    let mut run = |calls| {
        let region = Region::new(ALLOCATOR);
        work(calls);
        let change = region.change();
        latency::p99(); // of no interest here, and not to be kept
        change
    };
    let (few, many) = (run(CALLS), run(CALLS + CALLS));
    // Rounded: another thread, as an exporter's, may have allocated something meanwhile.
    let each = |read: fn(&Stats) -> usize| {
        let calls = read(&many) as f64 - read(&few) as f64;
        (calls / CALLS as f64).round() as u64
    };
    Ok((
        each(|stats| stats.allocations + stats.reallocations),
        each(|stats| stats.bytes_allocated),
    ))
}
