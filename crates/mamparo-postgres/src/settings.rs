//! How the database is reached, and the bounds of it.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::InvalidSetting;
use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_durable::handler::Listener;
use sqlx::postgres::PgConnectOptions;

/// The schema that holds the tables.
const SCHEMA: &str = "mamparo";

/// As long as a schema's name may be: the channel of the same name, with a prefix, has 63 bytes in PostgreSQL.
const LONGEST_SCHEMA: usize = 48;

/// As long as the poll may be: what others schedule for later than this is not told to those who wait.
pub(crate) const LONGEST_POLL: Duration = Duration::from_secs(60);

/// Settings of a [`Postgres`](crate::Postgres), checked.
#[derive(Clone)]
pub struct Settings {
    pub(crate) server: PgConnectOptions,
    pub(crate) schema: String,
    pub(crate) connections: u32,
    pub(crate) writers: u32,
    pub(crate) waiting: usize,
    pub(crate) acquire_timeout: Duration,
    pub(crate) statement_timeout: Duration,
    pub(crate) poll: Duration,
    pub(crate) redelivery_limit: u32,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) listener: Arc<dyn Listener>,
}

impl Settings {
    /// Starts from a URL, such as `postgres://user:password@host:5432/database?sslmode=verify-full`, and the defaults.
    ///
    /// The address must be the server's own, or a proxy's that keeps sessions: prepared statements and `LISTEN` need them.
    pub fn builder(url: impl Into<String>) -> SettingsBuilder {
        SettingsBuilder {
            url: url.into(),
            schema: SCHEMA.to_owned(),
            connections: 8,
            writers: 2,
            waiting: 8_192,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(10),
            poll: Duration::from_secs(5),
            redelivery_limit: 10,
            clock: Arc::new(SystemClock),
            listener: Arc::new(()),
        }
    }
}

/// Makes [`Settings`].
///
/// ```
/// use mamparo_postgres::Settings;
///
/// assert!(Settings::builder("postgres://localhost/shop").schema("retries").build().is_ok());
/// let refused = Settings::builder("postgres://localhost/shop").writers(8).build().unwrap_err();
/// assert_eq!(refused.to_string(), "writers = 8 is refused: must be at least 1 and less than connections, which reads need too");
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SettingsBuilder {
    url: String,
    schema: String,
    connections: u32,
    writers: u32,
    waiting: usize,
    acquire_timeout: Duration,
    statement_timeout: Duration,
    poll: Duration,
    redelivery_limit: u32,
    clock: Arc<dyn WallClock>,
    listener: Arc<dyn Listener>,
}

impl SettingsBuilder {
    /// Sets the schema that holds the tables; `mamparo` by default. It is made if it is missing.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Sets how many connections there are at most, besides one that listens; 8 by default. They are the engine's own.
    pub const fn connections(mut self, connections: u32) -> Self {
        self.connections = connections;
        self
    }

    /// Sets how many transactions write at once; 2 by default: one gathers while the other commits. More make each smaller.
    pub const fn writers(mut self, writers: u32) -> Self {
        self.writers = writers;
        self
    }

    /// Sets how many writes may wait for a writer; 8 192 by default.
    pub const fn waiting(mut self, writes: usize) -> Self {
        self.waiting = writes;
        self
    }

    /// Sets how long a connection may take to be had, connecting included; 5 s by default. While the server is away, every
    /// call takes as long before it fails.
    pub const fn acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = timeout;
        self
    }

    /// Sets how long one statement may take; 10 s by default.
    pub const fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// Sets how often is looked without any notification; 5 s by default, at most 60 s.
    pub const fn poll(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    /// Sets how often a message is delivered before it is buried; 10 by default.
    pub const fn redelivery_limit(mut self, deliveries: u32) -> Self {
        self.redelivery_limit = deliveries;
        self
    }

    /// Sets the wall clock that says what is due and which lease is over; the machine's own by default.
    ///
    /// The clocks of all engines on one database must agree to within much less than a lease.
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets who hears of it, once, when what sweeps keys or an inbox fails; nobody by default. It is tried again all the same.
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = listener;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when the URL can't be read, the schema's name is no plain name, a number or a duration is 0, the writers
    /// would leave no connection to reads, or the poll is longer than 60 s.
    pub fn build(self) -> Result<Settings, InvalidSetting> {
        let server = parse(&self.url)?;
        check_schema(&self.schema)?;
        if self.writers == 0 || self.writers >= self.connections {
            let reason = "must be at least 1 and less than connections, which reads need too";
            return Err(InvalidSetting::new("writers", self.writers, reason));
        }
        positive("waiting", self.waiting)?;
        positive("redelivery_limit", self.redelivery_limit as usize)?;
        for (setting, duration) in [
            ("acquire_timeout", self.acquire_timeout),
            ("statement_timeout", self.statement_timeout),
            ("poll", self.poll),
        ] {
            let millis = usize::try_from(duration.as_millis()).unwrap_or(usize::MAX);
            positive(setting, millis)?;
        }
        if self.poll > LONGEST_POLL {
            let value = format!("{:?}", self.poll);
            return Err(InvalidSetting::new("poll", value, "must be at most 60 s"));
        }
        Ok(Settings {
            server,
            schema: self.schema,
            connections: self.connections,
            writers: self.writers,
            waiting: self.waiting,
            acquire_timeout: self.acquire_timeout,
            statement_timeout: self.statement_timeout,
            poll: self.poll,
            redelivery_limit: self.redelivery_limit,
            clock: self.clock,
            listener: self.listener,
        })
    }
}

/// Does not show the URL, which may hold a password.
fn parse(url: &str) -> Result<PgConnectOptions, InvalidSetting> {
    let reason = "must be postgres://user@host:port/database";
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(InvalidSetting::new("url", "another scheme", reason));
    }
    url.parse()
        .map_err(|error| InvalidSetting::new("url", error, reason))
}

impl Debug for Settings {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("host", &self.server.get_host())
            .field("database", &self.server.get_database())
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl Debug for SettingsBuilder {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettingsBuilder")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

fn positive(setting: &'static str, value: usize) -> Result<(), InvalidSetting> {
    if value == 0 {
        return Err(InvalidSetting::new(setting, value, "must be more than 0"));
    }
    Ok(())
}

/// Names that need no quotes, so that an operator need not either.
fn check_schema(name: &str) -> Result<(), InvalidSetting> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let starts = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    if starts && name.len() <= LONGEST_SCHEMA && name.bytes().all(plain) && !name.starts_with("pg_")
    {
        return Ok(());
    }
    let reason = "must be 1 to 48 of a-z, 0-9 and _, not begin with a digit, nor with pg_";
    Err(InvalidSetting::new("schema", format!("{name:?}"), reason))
}
