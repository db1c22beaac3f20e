//! Where the transactions are.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use mamparo_durable::backend::Backend;
use mamparo_postgres::{Postgres, Settings};
use mamparo_sqlite::SqliteDurable;

use super::trouble::Trouble;

/// A store, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Sqlite(PathBuf),
    Postgres(String),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("sqlite", file)) if !file.is_empty() => {
                let file = file.strip_prefix("//").unwrap_or(file);
                Ok(Self::Sqlite(file.into()))
            }
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(text.to_owned())),
            _ => Err("write sqlite:FILE or postgres://USER@HOST/DATABASE".to_owned()),
        }
    }
}

impl Place {
    /// Opens it for a process that works on it, and makes it where it is missing.
    pub(super) async fn work(&self, poll: Duration) -> Result<Backend, Trouble> {
        match self {
            Self::Sqlite(file) => {
                let store = SqliteDurable::builder(file).look_again(poll);
                Ok(store.open()?.backend())
            }
            Self::Postgres(url) => connect(url).await,
        }
    }

    /// Opens one that is there.
    pub(super) async fn open(&self) -> Result<Backend, Trouble> {
        match self {
            Self::Sqlite(file) if !file.exists() => Err(Trouble::usage(format!(
                "{}: there is no such file; `mamparo engine run` and `mamparo tx submit` make it",
                file.display()
            ))),
            Self::Sqlite(file) => Ok(SqliteDurable::open(file)?.backend()),
            Self::Postgres(url) => connect(url).await,
        }
    }
}

async fn connect(url: &str) -> Result<Backend, Trouble> {
    let settings = Settings::builder(url).build();
    let settings = settings.map_err(|error| Trouble::usage(error.to_string()))?;
    let connected = Postgres::connect(settings).await;
    let postgres = connected.map_err(|error| {
        let Trouble { exit, line } = error.into();
        let line = format!("{}: {line}", without_password(url));
        Trouble { exit, line }
    })?;
    Ok(postgres.backend())
}

/// Who and how to get in stays out of terminals and logs.
fn without_password(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("postgres://{place}")
}
