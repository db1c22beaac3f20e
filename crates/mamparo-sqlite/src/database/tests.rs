//! A file and its threads.

use std::time::Duration;

use mamparo::idempotency::{StoreError, StoreErrorKind};
use rusqlite::Connection;
use tempfile::TempDir;

use super::checkpoint::Rest;
use super::{Database, Part, Settings};

const PART: Part = Part {
    name: "things",
    steps: &[
        "CREATE TABLE things (number INTEGER PRIMARY KEY) STRICT",
        "ALTER TABLE things ADD COLUMN name TEXT",
    ],
};

struct Disk {
    folder: TempDir,
}

impl Disk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::at(&self.folder.path().join("file.db"));
        settings.busy_timeout = Duration::from_millis(50);
        settings
    }

    fn open(&self, part: Part) -> Result<Database, StoreError> {
        Database::open(&self.settings(), &[part])
    }

    fn raw(&self) -> Connection {
        Connection::open(self.settings().path).unwrap()
    }
}

async fn insert(database: &Database, number: i64) -> Result<(), StoreError> {
    let insert = move |connection: &Connection| {
        let inserted = connection.execute("INSERT INTO things (number) VALUES (?1)", [number]);
        inserted.map(drop).map_err(super::store_error)
    };
    database.writer.write(insert).await
}

async fn count(database: &Database) -> i64 {
    let count = |connection: &Connection| {
        let count = connection.query_row("SELECT count(*) FROM things", [], |row| row.get(0));
        count.map_err(super::store_error)
    };
    database.readers.read(count).await.unwrap()
}

#[test]
fn a_schema_is_brought_up_to_date_step_by_step_and_once() {
    let disk = Disk::new();
    let first = Part {
        steps: &PART.steps[..1],
        ..PART
    };
    drop(disk.open(first).unwrap());
    for _ in 0..2 {
        drop(disk.open(PART).unwrap());
    }
    let steps: i64 = disk
        .raw()
        .query_row("SELECT version FROM mamparo_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!(steps, 2);
    let other = Part {
        name: "others",
        steps: &["CREATE TABLE others (a)"],
    };
    drop(disk.open(other).unwrap());
    drop(disk.open(PART).unwrap());
}

#[test]
fn a_file_of_a_newer_version_or_of_another_program_is_refused_and_left_alone() {
    let disk = Disk::new();
    drop(disk.open(PART).unwrap());
    disk.raw()
        .execute("UPDATE mamparo_schema SET version = 3", [])
        .unwrap();
    let error = disk.open(PART).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Incompatible);

    let disk = Disk::new();
    disk.raw()
        .execute_batch("CREATE TABLE things (theirs)")
        .unwrap();
    assert_eq!(
        disk.open(PART).unwrap_err().kind(),
        StoreErrorKind::Incompatible
    );
    disk.raw()
        .execute_batch("SELECT theirs FROM things")
        .unwrap();

    let disk = Disk::new();
    let tables = "CREATE TABLE mamparo_schema (theirs)";
    disk.raw().execute_batch(tables).unwrap();
    assert_eq!(
        disk.open(PART).unwrap_err().kind(),
        StoreErrorKind::Incompatible
    );

    let disk = Disk::new();
    std::fs::write(
        disk.settings().path,
        "no database, but long enough to be looked at".repeat(40),
    )
    .unwrap();
    assert_eq!(
        disk.open(PART).unwrap_err().kind(),
        StoreErrorKind::Incompatible
    );

    let mut nowhere = Disk::new().settings();
    nowhere.path = "/nowhere/at/all/file.db".into();
    let error = Database::open(&nowhere, &[PART]).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_from_everywhere_are_all_done_and_then_read() {
    let disk = Disk::new();
    let database = disk.open(PART).unwrap();
    let writes = (0..500).map(|number| {
        let database = database.clone();
        tokio::spawn(async move { insert(&database, number).await })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap().unwrap();
    }
    assert_eq!(count(&database).await, 500);
    drop(database);
    assert_eq!(count(&disk.open(PART).unwrap()).await, 500);
}

#[tokio::test]
async fn a_write_that_fails_or_panics_takes_no_other_along() {
    let disk = Disk::new();
    let database = disk.open(PART).unwrap();
    insert(&database, 1).await.unwrap();
    let both = |connection: &Connection| -> Result<(), StoreError> {
        let inserts =
            "INSERT INTO things (number) VALUES (2); INSERT INTO things (number) VALUES (1)";
        connection
            .execute_batch(inserts)
            .map_err(super::store_error)
    };
    let panics = |connection: &Connection| -> Result<(), StoreError> {
        connection
            .execute_batch("INSERT INTO things (number) VALUES (3)")
            .unwrap();
        panic!("on purpose")
    };
    let (failed, panicked, fine) = tokio::join!(
        database.writer.transaction(both),
        database.writer.transaction(panics),
        insert(&database, 4),
    );
    assert_eq!(failed.unwrap_err().kind(), StoreErrorKind::Other);
    assert_eq!(panicked.unwrap_err().kind(), StoreErrorKind::Other);
    fine.unwrap();
    assert_eq!(count(&database).await, 2, "1 and 4");
}

#[tokio::test]
async fn a_file_that_another_process_has_locked_says_so_and_is_read_meanwhile() {
    let disk = Disk::new();
    let database = disk.open(PART).unwrap();
    let other = disk.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = insert(&database, 1).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Locked);
    assert_eq!(count(&database).await, 0);
    other.execute_batch("ROLLBACK").unwrap();
    insert(&database, 1).await.unwrap();
}

#[tokio::test]
async fn a_full_disk_says_so_and_what_was_stored_stays() {
    let disk = Disk::new();
    let database = disk.open(PART).unwrap();
    insert(&database, 1).await.unwrap();
    let limit = |pages: u32| {
        let database = database.clone();
        async move {
            let limit = move |connection: &Connection| {
                let set =
                    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
                set.map_err(super::store_error)
            };
            database.writer.write(limit).await.unwrap();
        }
    };
    limit(1).await;
    let big = || {
        database.writer.write(|connection: &Connection| {
            let insert = "INSERT INTO things (number, name) VALUES (2, hex(zeroblob(100000)))";
            connection.execute_batch(insert).map_err(super::store_error)
        })
    };
    assert_eq!(big().await.unwrap_err().kind(), StoreErrorKind::Full);
    assert_eq!(count(&database).await, 1);
    limit(1_000_000).await;
    big().await.unwrap();
    assert_eq!(count(&database).await, 2);
}

#[test]
fn a_log_begins_anew_between_two_commits_once_nobody_reads_what_is_older() {
    let disk = Disk::new();
    drop(disk.open(PART).unwrap());
    let (file, reader, rest) = (disk.raw(), disk.raw(), Rest::default());
    // A commit and its rest, and how many pages the log has then.
    let commit = || -> i64 {
        file.execute_batch("INSERT INTO things DEFAULT VALUES")
            .unwrap();
        rest.settle(&file);
        let pages = |row: &rusqlite::Row<'_>| row.get(1);
        file.query_row("PRAGMA wal_checkpoint(NOOP)", [], pages)
            .unwrap()
    };
    let first = commit();
    let second = commit();
    assert!(second > first, "nobody asked");
    rest.ask();
    assert!(commit() > second, "it is moved, and then begins anew");
    assert_eq!(commit(), 1);

    rest.ask();
    reader.execute_batch("BEGIN; SELECT * FROM things").unwrap();
    assert!(commit() < commit(), "what is older is still read");
    reader.execute_batch("COMMIT").unwrap();
    commit();
    assert_eq!(commit(), 1);
}

#[tokio::test]
async fn a_reader_can_not_write() {
    let disk = Disk::new();
    let database = disk.open(PART).unwrap();
    let write = |connection: &Connection| {
        let insert = connection.execute_batch("INSERT INTO things (number) VALUES (1)");
        insert.map_err(super::store_error)
    };
    assert!(database.readers.read(write).await.is_err());
}
