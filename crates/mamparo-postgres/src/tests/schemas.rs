use mamparo_durable::backend::{Begun, Store as _, Trouble};
use mamparo_testkit::private::PrivatePostgres;

use super::support::{fresh, new, schema, settings, sql};
use crate::Postgres;
use crate::schema::MIGRATIONS;

async fn connect(schema: &str) -> Result<Postgres, mamparo_durable::backend::BackendError> {
    let url = PrivatePostgres::shared().await.url();
    Postgres::connect(settings(&url).schema(schema).build().unwrap()).await
}

#[tokio::test]
async fn engines_that_start_at_once_make_the_tables_once() {
    let schema = schema();
    let all = (0..6).map(|_| connect(&schema));
    let engines: Vec<Postgres> = futures_util::future::try_join_all(all).await.unwrap();
    assert_eq!(engines[0].begin(new("a")).await.unwrap(), Begun::New);
    assert!(matches!(
        engines[5].begin(new("a")).await.unwrap(),
        Begun::Exists(_)
    ));
}

#[tokio::test]
async fn tables_of_a_newer_version_or_of_another_program_are_refused_and_left_alone() {
    let postgres = fresh().await;
    let name = postgres.schema().to_owned();
    sql(
        &postgres,
        "INSERT INTO mamparo_schema (version) VALUES (99)",
    )
    .await;
    let error = connect(&name).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Incompatible);
    let known = MIGRATIONS.len();
    assert_eq!(
        error.to_string(),
        format!("schema {name} has version 99 and this program knows {known}: start a newer one")
    );
    sql(&postgres, "DROP TABLE mamparo_schema").await;
    let error = connect(&name).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Incompatible);
    assert_eq!(
        error.to_string(),
        format!(
            "schema {name} has a table transactions of another program: name a schema of its own"
        )
    );
}

#[tokio::test]
async fn who_may_only_read_and_write_rows_can_start_an_engine() {
    let owner = fresh().await;
    let name = owner.schema().to_owned();
    sql(
        &owner,
        &format!(
            "CREATE ROLE {name}_engine LOGIN; GRANT USAGE ON SCHEMA {name} TO {name}_engine;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {name}_engine"
        ),
    )
    .await;
    let url = PrivatePostgres::shared()
        .await
        .url()
        .replace("postgres@", &format!("{name}_engine@"));
    let engine = Postgres::connect(settings(&url).schema(&name).build().unwrap())
        .await
        .unwrap();
    assert_eq!(engine.begin(new("a")).await.unwrap(), Begun::New);
    let missing = Postgres::connect(settings(&url).schema(schema()).build().unwrap()).await;
    assert_eq!(missing.unwrap_err().trouble(), Trouble::Refused);
    let nobody = url.replace("_engine@", "_nobody@");
    let refused = Postgres::connect(settings(&nobody).schema(&name).build().unwrap()).await;
    assert_eq!(refused.unwrap_err().trouble(), Trouble::Refused);
}

#[test]
fn nonsense_is_refused_in_one_line() {
    let refused = |change: fn(crate::SettingsBuilder) -> crate::SettingsBuilder| {
        change(settings("postgres://postgres@localhost/x"))
            .build()
            .unwrap_err()
            .setting()
    };
    assert_eq!(refused(|settings| settings.schema("")), "schema");
    assert_eq!(refused(|settings| settings.schema("a b")), "schema");
    assert_eq!(refused(|settings| settings.schema("pg_temp")), "schema");
    assert_eq!(
        refused(|settings| settings.schema("x".repeat(49))),
        "schema"
    );
    assert_eq!(refused(|settings| settings.writers(0)), "writers");
    assert_eq!(refused(|settings| settings.waiting(0)), "waiting");
    assert_eq!(
        refused(|settings| settings.redelivery_limit(0)),
        "redelivery_limit"
    );
    assert_eq!(
        refused(|settings| settings.poll(std::time::Duration::from_secs(61))),
        "poll"
    );
    let url = crate::Settings::builder("mysql://me:secret@localhost").build();
    let text = format!(
        "{:?}",
        settings("postgres://me:secret@localhost").build().unwrap()
    );
    assert!(
        text.contains("localhost") && !text.contains("secret"),
        "{text}"
    );
    let text = url.unwrap_err().to_string();
    assert!(
        text.starts_with("url = ") && !text.contains("secret"),
        "{text}"
    );
}
