//! Shows load shedding: of three times what a server can do, what passes is quick, the payments all pass, and the rest is told at once.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::convert::Infallible;
use std::time::Duration;

use mamparo::Rejection;
use mamparo::load_shed::{LoadShedLayer, LoadShedPolicy, Priority};
use mamparo_core::{BoxError, Plain, clock};
use tower::{Layer, ServiceExt, service_fn};

/// What a job is for.
#[derive(Clone, Copy)]
enum Job {
    Payment,
    Page,
    Report,
}

fn priority(job: &Job) -> Priority {
    match job {
        Job::Payment => Priority::Critical,
        Job::Page => Priority::Normal,
        Job::Report => Priority::Sheddable,
    }
}

/// Takes 20 ms, however many come at once.
async fn work(_: Job) -> Result<(), Infallible> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let policy = LoadShedPolicy::builder().max_in_flight(20).build()?;
    let layer = LoadShedLayer::new(policy, Plain::not_idempotent()).priority(priority);
    let server = layer.layer(service_fn(work));

    let start = clock::now();
    let mut jobs = Vec::new();
    for (job, count) in [(Job::Report, 30), (Job::Page, 25), (Job::Payment, 5)] {
        for _ in 0..count {
            jobs.push((job, tokio::spawn(server.clone().oneshot(job))));
        }
    }
    let (mut done, mut shed) = ([0; 3], [0; 3]);
    for (job, call) in jobs {
        match call.await? {
            Ok(()) => done[job as usize] += 1,
            Err(error) => {
                assert!(Rejection::of(&*error).is_some_and(Rejection::is_overloaded));
                shed[job as usize] += 1;
            }
        }
    }
    for (name, job) in [("payments", 0), ("pages", 1), ("reports", 2)] {
        println!("{name:9} done {:2}, shed {:2}", done[job], shed[job]);
    }
    println!("all over after {:?}", start.elapsed());
    assert_eq!((done, shed), ([5, 5, 10], [0, 20, 20]));
    assert_eq!(layer.in_flight(), Some(0));
    Ok(())
}
