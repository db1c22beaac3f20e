//! A process that is killed in the middle of its work.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use mamparo_durable::backend::QueueName;
use mamparo_durable::handler::{FireHandler, Runner};
use mamparo_durable::machine::{Answer, Input, Outcome};
use tower::{Service, ServiceExt};

use super::support::{Disk, LEASE, begin, id};
use crate::durable::SqliteDurable;

const FILE: &str = "MAMPARO_TEST_CRASH_FILE";
const WORKER: &str = "durable::tests::crash::the_process_that_is_killed";
const ROUNDS: u64 = 6;
const CALLERS: u64 = 32;

/// What was answered is there after a kill, each step wholly or not at all, and its history says the same.
#[test]
fn a_killed_process_loses_nothing_that_it_answered_and_leaves_no_half_step() {
    let disk = Disk::new();
    let mut answered = Vec::new();
    for round in 0..ROUNDS {
        let mut worker = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", WORKER, "--ignored", "--nocapture"])
            .env(FILE, disk.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines();
        // Once it is at work, and a little later each time.
        let first = lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.starts_with("answered"));
        let reader = thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
        thread::sleep(Duration::from_millis(30 + 45 * round));
        worker.kill().unwrap();
        worker.wait().unwrap();
        answered.extend(first);
        answered.extend(reader.join().unwrap());
        check(&disk, &answered);
    }
    assert!(answered.len() > 50, "{} are little work", answered.len());
}

fn check(disk: &Disk, answered: &[String]) {
    drop(SqliteDurable::open(disk.path()).unwrap());
    let file = disk.raw();
    let one = |sql: &str| {
        file.query_row(sql, [], |row| row.get::<_, String>(0))
            .unwrap()
    };
    assert_eq!(one("PRAGMA integrity_check"), "ok");
    let count = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let half = "SELECT count(*) FROM mamparo_durable t WHERE state IN ('SCHEDULING', 'SENDING')
        OR state = 'SCHEDULED' AND 1 <> (SELECT count(*) FROM mamparo_durable_message m
            WHERE queue = 'fires' AND m.id = t.id AND attempt = attempt_next AND seq = schedule_seq)
        OR state = 'IN_FLIGHT' AND attempt_current = 2 AND 1 <> (SELECT count(*) FROM mamparo_durable_message m
            WHERE queue = 'requests' AND m.id = t.id AND attempt = 2)";
    assert_eq!(count(half), 0, "a half step");
    let history = "SELECT count(*) FROM mamparo_durable t WHERE state <> (SELECT to_state FROM mamparo_durable_event
        WHERE of = t.number ORDER BY number DESC LIMIT 1)";
    assert_eq!(count(history), 0, "a history that ends elsewhere");
    let mut stored = file
        .prepare("SELECT 1 FROM mamparo_durable WHERE id = ?1")
        .unwrap();
    for line in answered {
        // The last line may be cut.
        if let Some(name) = line
            .strip_prefix("answered ")
            .and_then(|rest| rest.strip_suffix('.'))
        {
            assert!(stored.exists([name]).unwrap(), "{name} was answered");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "killed by the test above, and otherwise without an end"]
async fn the_process_that_is_killed() {
    let Some(path) = std::env::var_os(FILE) else {
        return;
    };
    let file = SqliteDurable::open(path).unwrap();
    let backend = file.backend();
    let runner = Runner::builder(backend.clone()).build();
    let process = std::process::id();
    for caller in 0..CALLERS {
        let runner = runner.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let name = format!("t-{process}-{caller}-{number}x");
                work(&runner, &name, number % 2 == 0).await;
                println!("answered {name}.");
            }
        });
    }
    let fires = backend.queue(QueueName::Fires);
    loop {
        fires.ready().await;
        for fire in fires.take(64, LEASE).await.unwrap() {
            let mut handler = FireHandler::new(runner.clone(), ());
            handler.ready().await.unwrap().call(fire).await.unwrap();
        }
    }
}

async fn work(runner: &Runner, name: &str, at_once: bool) {
    begin(runner, name).await;
    let refused = Answer::new(1, 0, Outcome::Refused);
    runner.run(&id(name), Input::Answer(refused)).await.unwrap();
    if at_once {
        let fire = Input::FireNow { reason: None };
        runner.run(&id(name), fire).await.unwrap();
    }
}
