//! Times each case against the first of its group, counts its instructions, and prints one table of it all.
//!
//! docs/benchmarks.md says how it measures and how to read it.

mod cases;
mod grpc;
mod loopback;
mod report;
mod threads;

use std::env;

use cases::groups;
use criterion::Criterion;
use mamparo_core::BoxError;
use report::{Table, callgrind, timing};

fn main() -> Result<(), BoxError> {
    let mut groups = groups();
    groups.push(loopback::group()?);
    groups.push(grpc::group()?);
    if let Some(run) = callgrind::Run::asked(env::args()) {
        return run.work(&groups);
    }
    let mut criterion = Criterion::default()
        .warm_up_time(timing::WARM_UP)
        .measurement_time(timing::MEASUREMENT)
        .configure_from_args();
    let mut table = Table::new();
    for group in &groups {
        let timed = timing::time(&mut criterion, group)?;
        table.add(group, &timed)?;
    }
    let two_threads = threads::time(&mut criterion)?;
    criterion.final_summary();
    table.print(two_threads.as_ref());
    Ok(())
}
