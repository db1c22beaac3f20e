//! What can be wrong with a file.

use std::time::Duration;

use mamparo_durable::backend::{BackendError, Step, Trouble};
use mamparo_durable::machine::State;

use super::support::{Disk, begin, defer, id, new, refused, step};

fn refusal(disk: &Disk) -> BackendError {
    disk.builder().open().map(drop).unwrap_err()
}

#[test]
fn a_file_of_a_newer_version_or_of_another_program_is_refused_in_one_line() {
    let disk = Disk::new();
    drop(disk.open());
    let newer = "UPDATE mamparo_schema SET version = 99 WHERE part = 'mamparo_durable'";
    disk.raw().execute(newer, []).unwrap();
    let error = refusal(&disk);
    assert_eq!(error.trouble(), Trouble::Incompatible);
    let message = error.to_string();
    assert!(
        message.contains("engine.db") && message.contains("version 99"),
        "{message}"
    );
    assert!(!message.contains('\n'));

    let disk = Disk::new();
    std::fs::write(disk.path(), "the diary of a programmer ".repeat(100)).unwrap();
    assert_eq!(refusal(&disk).trouble(), Trouble::Incompatible);

    for theirs in ["mamparo_durable", "mamparo_durable_message"] {
        let disk = Disk::new();
        let table = format!("CREATE TABLE {theirs} (theirs)");
        disk.raw().execute_batch(&table).unwrap();
        assert_eq!(refusal(&disk).trouble(), Trouble::Incompatible, "{theirs}");
        let untouched = format!("SELECT theirs FROM {theirs}");
        disk.raw().execute_batch(&untouched).unwrap();
    }
}

/// Nothing of what failed is there, and all of it can be done once there is room.
#[tokio::test]
async fn a_full_disk_says_so_and_loses_nothing() {
    let disk = Disk::new();
    let file = disk.builder().open().unwrap();
    let backend = file.backend();
    let runner = disk.runner(&backend);
    begin(&runner, "small").await;
    let limit = async |pages: u32| {
        let limit = move |file: &rusqlite::Connection, _: &_| {
            Ok(file.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
        };
        file.write(limit).await.unwrap();
    };
    limit(1).await;
    let mut full = 0;
    for number in 0..200 {
        let big = mamparo_durable::backend::NewTransaction::new(
            new(&runner, &format!("big-{number}x")).record,
            vec![7; 10_000],
        );
        if let Err(error) = runner.begin(big.unwrap(), Some(refused(1))).await {
            assert_eq!(error.trouble(), Trouble::Full, "{error}");
            assert!(error.is_transient());
            full += 1;
        }
    }
    assert!(full > 100, "{full}");
    assert_eq!(runner.load(&id("big-199x")).await.unwrap(), None);
    limit(1_000_000).await;
    defer(&runner, "big-199x").await;
    let stored = runner.load(&id("big-199x")).await.unwrap().unwrap();
    assert_eq!(stored.progress.state, State::Scheduled);
    let broken: i64 = disk
        .raw()
        .query_row(
            "SELECT count(*) FROM mamparo_durable t WHERE NOT EXISTS (SELECT 1 FROM mamparo_durable_request WHERE number = t.number)
             OR state = 'SCHEDULED' AND NOT EXISTS (SELECT 1 FROM mamparo_durable_message WHERE id = t.id)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(broken, 0, "each step is there wholly, or not at all");
}

#[tokio::test]
async fn a_locked_file_says_so_and_is_read_meanwhile() {
    let disk = Disk::new();
    let backend = disk.open();
    let runner = disk.runner(&backend);
    begin(&runner, "a").await;
    let other = disk.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = runner.run(&id("a"), refused(1)).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unavailable);
    assert!(error.to_string().contains("locked"), "{error}");
    assert!(runner.load(&id("a")).await.unwrap().is_some());
    other.execute_batch("ROLLBACK").unwrap();
    runner.run(&id("a"), refused(1)).await.unwrap();
}

#[tokio::test]
async fn a_row_that_makes_no_sense_fails_alone() {
    let disk = Disk::new();
    let backend = disk.open();
    let runner = disk.runner(&backend);
    for name in ["sound", "broken", "sound-too"] {
        begin(&runner, name).await;
    }
    let record = |name| {
        let runner = runner.clone();
        async move { runner.load(&id(name)).await.unwrap().unwrap() }
    };
    let now = disk.hands.now();
    let steps: Vec<Step> = [
        record("sound").await,
        record("broken").await,
        record("sound-too").await,
    ]
    .iter()
    .map(|record| step(record, refused(1), now))
    .collect();
    let broken =
        "UPDATE mamparo_durable SET state = 'LOST', attempt_current = -3 WHERE id = 'broken'";
    disk.raw().execute(broken, []).unwrap();
    let done = backend.outbox().unwrap().commit(steps).await;
    let [sound, broken, too] = &done[..] else {
        panic!("three results")
    };
    assert!(sound.is_ok() && too.is_ok());
    let error = broken.as_ref().unwrap_err();
    assert_eq!(error.trouble(), Trouble::Corrupt);
    assert!(error.to_string().contains("transaction broken"), "{error}");
    let loaded = backend
        .store()
        .load(["sound", "broken"].map(id).to_vec())
        .await;
    assert!(loaded[0].is_ok() && loaded[1].is_err());
    disk.hands.turn(Duration::from_secs(86_400));
    let listed = backend
        .store()
        .list(mamparo_durable::backend::Filter::default(), 10)
        .await;
    assert_eq!(listed.unwrap().len(), 2, "it hides no other");
    let stuck = backend
        .store()
        .stuck(
            disk.hands.now(),
            mamparo_durable::machine::Patience::default(),
            10,
        )
        .await;
    assert_eq!(stuck.unwrap().len(), 2);
    backend.store().census(disk.hands.now()).await.unwrap();
}

/// Whatever fails in the middle of a step, such as a damaged page: the commit is given up, and can be asked for again.
#[tokio::test]
async fn a_step_that_fails_half_way_is_undone_with_all_that_shares_its_commit() {
    let disk = Disk::new();
    let backend = disk.open();
    let runner = disk.runner(&backend);
    for name in ["before", "fails"] {
        begin(&runner, name).await;
    }
    let fails = "CREATE TRIGGER fails BEFORE INSERT ON mamparo_durable_event
        WHEN NEW.of = (SELECT number FROM mamparo_durable WHERE id = 'fails') AND NEW.to_state = 'SCHEDULED'
        BEGIN SELECT RAISE(ABORT, 'on purpose'); END";
    disk.raw().execute_batch(fails).unwrap();
    let mut steps = Vec::new();
    for name in ["before", "fails"] {
        let record = runner.load(&id(name)).await.unwrap().unwrap();
        steps.push(step(&record, refused(1), disk.hands.now()));
    }
    let outbox = backend.outbox().unwrap();
    for done in outbox.commit(steps.clone()).await {
        assert_eq!(done.unwrap_err().trouble(), Trouble::Unavailable);
    }
    for name in ["before", "fails"] {
        let record = runner.load(&id(name)).await.unwrap().unwrap();
        assert_eq!(record.progress.state, State::InFlight, "{name}");
        let history = backend.store().history(id(name), 0, 9).await.unwrap();
        assert_eq!(history.len(), 1, "{name}");
    }
    disk.raw().execute_batch("DROP TRIGGER fails").unwrap();
    for done in outbox.commit(steps).await {
        done.unwrap();
    }
}

#[tokio::test]
async fn a_backup_is_a_whole_engine() {
    let disk = Disk::new();
    let file = disk.builder().open().unwrap();
    let backend = file.backend();
    let runner = disk.runner(&backend);
    defer(&runner, "a").await;
    let copy = disk.folder.path().join("copy.db");
    file.back_up(&copy).await.unwrap();
    defer(&runner, "later").await;
    let error = file.back_up(&copy).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Refused);
    drop((file, backend, runner));

    std::fs::rename(copy, disk.path()).unwrap();
    for log in ["-wal", "-shm"] {
        let _gone = std::fs::remove_file(disk.folder.path().join(format!("engine.db{log}")));
    }
    let backend = disk.open();
    let runner = disk.runner(&backend);
    assert_eq!(runner.load(&id("later")).await.unwrap(), None);
    let record = runner.load(&id("a")).await.unwrap().unwrap();
    assert_eq!(record.progress.state, State::Scheduled);
    let fires = backend.queue(mamparo_durable::backend::QueueName::Fires);
    assert_eq!(fires.depth().await.unwrap().later, 1);
}
