//! What a deferral costs this process: `cargo test --release -p mamparo-aws speed -- --ignored --nocapture`.
//!
//! The local server takes some fifty times as long, and is not counted.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use mamparo_core::clock;
use mamparo_durable::backend::{Message, NewTransaction, QueueName};
use mamparo_durable::handler::{Runner, Settlement};
use mamparo_durable::machine::{Answer, Input, Outcome};

use super::resources;
use super::support::{LONG, id};
use crate::store::tests::support::{make_tables, record};

/// As many handle answers at once, each a batch.
const CALLERS: usize = 32;

/// As many deferrals as are measured.
const DEFERRALS: usize = 1_000;

/// CPU milliseconds of this process.
fn cpu() -> u32 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u32>().unwrap());
    ticks.sum::<u32>() * 10
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures: it takes long, and the machine for itself"]
async fn speed_of_a_deferral() {
    let aws = resources::fresh().await;
    make_tables(&aws).await;
    let runner = Runner::builder(aws.backend().await.unwrap()).build();
    let answers = runner.backend().queue(QueueName::Answers);
    let answer = Answer::new(1, 0, Outcome::Refused);
    for some in (0..DEFERRALS).collect::<Vec<_>>().chunks(50) {
        let begins = some.iter().map(|number| {
            let new = NewTransaction::new(record(&format!("t{number}")), &b"5 EUR"[..]);
            runner.backend().store().begin(new.unwrap())
        });
        assert!(join_all(begins).await.iter().all(Result::is_ok));
        let messages = some.iter().map(|number| Message::Answer {
            id: id(&format!("t{number}")),
            answer: answer.clone(),
        });
        answers.publish(messages.collect()).await.unwrap();
    }
    let done = AtomicUsize::new(0);
    let (start, before) = (clock::now(), cpu());
    let callers = (0..CALLERS).map(|_| async {
        while done.load(Ordering::Relaxed) < DEFERRALS {
            let taken = answers.take(10, LONG).await.unwrap();
            let handled = taken.into_iter().map(async |delivery| {
                let id = delivery.message.id().clone();
                let input = Input::Answer(answer.clone());
                let handled = runner.handle(&id, |_| input, Some(delivery.receipt));
                let handled = handled.await;
                assert_eq!(handled.unwrap().settlement, Settlement::Acknowledged);
                done.fetch_add(1, Ordering::Relaxed);
            });
            join_all(handled).await;
        }
    });
    join_all(callers).await;
    let (took, spent) = (start.elapsed(), cpu() - before);
    let each = f64::from(spent) / DEFERRALS as f64;
    println!("a deferral: {each:.2} ms of CPU, {DEFERRALS} in {took:.1?} with the local server");
}
