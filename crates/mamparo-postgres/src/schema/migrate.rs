//! Brings the tables up to date.

use mamparo_durable::backend::{BackendError, Trouble};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, query, query_scalar, raw_sql};

use crate::database::{Database, incompatible};
use crate::settings::Settings;

/// In the order of their numbers, from 1. What was released is never changed.
pub(crate) const MIGRATIONS: [&str; 5] = [
    include_str!("0001.sql"),
    include_str!("0002.sql"),
    include_str!("0003.sql"),
    include_str!("0004.sql"),
    include_str!("0005.sql"),
];

/// Names that other programs may have, too.
const TABLES: [&str; 10] = [
    "transactions",
    "history",
    "tally",
    "messages",
    "dead_letters",
    "discarded",
    "idempotency_keys",
    "limits",
    "events",
    "inbox",
];

/// "mamparo" as a number: who migrates holds it.
const LOCK: i64 = i64::from_be_bytes(*b"\0mamparo");

/// What is found in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Version(usize),
    Nothing,
    /// A table of one of our names, that we did not make.
    Foreign(&'static str),
}

/// Makes the tables, or brings them up to date, or refuses what is there.
pub(crate) async fn prepare(database: &Database, settings: &Settings) -> Result<(), BackendError> {
    let schema = settings.schema.clone();
    let encoding = database
        .with(|connection| {
            Box::pin(query_scalar::<_, String>("SHOW server_encoding").fetch_one(connection))
        })
        .await?;
    if encoding != "UTF8" {
        let message = format!("the database's encoding is {encoding}: make one with encoding UTF8");
        return Err(BackendError::new(Trouble::Refused, message));
    }
    let found = database
        .with(|connection| Box::pin(look(connection)))
        .await?;
    if check(found, &schema)? < MIGRATIONS.len() {
        let found = database
            .with(|connection| Box::pin(migrate(connection, schema.clone())))
            .await?;
        // Another engine, newer or a stranger, may have been first.
        check(found, &schema)?;
    }
    Ok(())
}

/// Refuses a schema whose tables are not there, or older than a version, and makes nothing.
pub(crate) async fn require(
    database: &Database,
    settings: &Settings,
    since: usize,
) -> Result<(), BackendError> {
    let found = database
        .with(|connection| Box::pin(look(connection)))
        .await?;
    if check(found, &settings.schema)? < since {
        let schema = &settings.schema;
        return Err(incompatible(format!(
            "schema {schema} has no such tables of mamparo: is it another schema, or another database?"
        )));
    }
    Ok(())
}

/// Returns how many migrations are applied.
fn check(found: Found, schema: &str) -> Result<usize, BackendError> {
    match found {
        Found::Nothing => Ok(0),
        Found::Version(version) if version <= MIGRATIONS.len() => Ok(version),
        Found::Version(version) => Err(incompatible(format!(
            "schema {schema} has version {version} and this program knows {}: start a newer one",
            MIGRATIONS.len()
        ))),
        Found::Foreign(table) => Err(incompatible(format!(
            "schema {schema} has a table {table} of another program: name a schema of its own"
        ))),
    }
}

async fn look(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()";
    let tables: Vec<String> = query_scalar(tables).fetch_all(&mut *connection).await?;
    let has = |name: &str| tables.iter().any(|table| table == name);
    if !has("mamparo_schema") {
        let foreign = TABLES.into_iter().find(|name| has(name));
        return Ok(foreign.map_or(Found::Nothing, Found::Foreign));
    }
    let version = "SELECT coalesce(max(version), 0) FROM mamparo_schema";
    let version: i64 = query_scalar(version).fetch_one(connection).await?;
    Ok(Found::Version(
        usize::try_from(version).unwrap_or(usize::MAX),
    ))
}

async fn migrate(connection: &mut PgConnection, schema: String) -> Result<Found, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *transaction)
        .await?;
    let there = query_scalar("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)");
    if !there.bind(&schema).fetch_one(&mut *transaction).await? {
        // Its name was checked to need no quotes.
        let make = format!("CREATE SCHEMA {schema}");
        raw_sql(AssertSqlSafe(make))
            .execute(&mut *transaction)
            .await?;
    }
    let found = look(&mut transaction).await?;
    let applied = match found {
        Found::Version(version) => version,
        Found::Nothing => 0,
        Found::Foreign(_) => return Ok(found),
    };
    raw_sql(
        "CREATE TABLE IF NOT EXISTS mamparo_schema (
            version bigint PRIMARY KEY,
            applied_at timestamptz NOT NULL DEFAULT now()
        )",
    )
    .execute(&mut *transaction)
    .await?;
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(applied) {
        raw_sql(*migration).execute(&mut *transaction).await?;
        let version = i64::try_from(number + 1).unwrap_or(i64::MAX);
        query("INSERT INTO mamparo_schema (version) VALUES ($1)")
            .bind(version)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(found)
}
