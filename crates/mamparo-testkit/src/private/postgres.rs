//! A PostgreSQL of one's own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use tokio::sync::OnceCell;

use super::folder::Folder;
use super::programs::{Account, find, free_address};

/// Where Debian keeps the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// As often as another port is tried, when someone else takes the free one first.
const PORTS: usize = 5;

const HELP: &str = "scripts/peers postgresql installs it where it can";

/// The end of its life, if nobody stops it before: at once, since its data are removed with it.
const AT_THE_END: &str = "\"$PG_CTL\" stop -D data -m immediate -w";

/// A PostgreSQL server on a free port of 127.0.0.1 with data of its own; it ends when it is dropped.
///
/// It trusts everyone on the machine, and has the user and the database `postgres`.
#[derive(Debug)]
pub struct PrivatePostgres {
    folder: Folder,
    account: Option<Account>,
    control: String,
    address: SocketAddr,
    options: String,
}

impl PrivatePostgres {
    /// Starts one that is quick, since it forgets commits if the machine stops (not if only the server does).
    ///
    /// # Panics
    ///
    /// If it is not installed, or doesn't start.
    pub async fn start() -> Self {
        Self::with("-c fsync=off -c full_page_writes=off").await
    }

    /// Starts one that keeps what it commits, as in production.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub async fn durable() -> Self {
        Self::with("-c fsync=on").await
    }

    /// Starts one with these options of the command `postgres`.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub async fn with(options: &str) -> Self {
        let options = options.to_owned();
        // Its programs take a second or so.
        let started = tokio::task::spawn_blocking(move || Self::make(options));
        started.await.expect("a server that is made")
    }

    /// Returns the one that all tests of this program share; it is quick, and never stopped before the program ends.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<PrivatePostgres> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Returns the URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.address)
    }

    /// Returns the URL of its database behind a proxy.
    #[must_use]
    pub fn url_at(&self, proxy: SocketAddr) -> String {
        format!("postgres://postgres@{proxy}/postgres?sslmode=disable")
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the folder that its data and its log are in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns its process's id.
    ///
    /// # Panics
    ///
    /// If it does not run.
    #[must_use]
    pub fn process(&self) -> u32 {
        let text = self.folder.text("data/postmaster.pid");
        let first = text
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok());
        first.expect("a server that runs")
    }

    /// Stops it as an operator does: sessions are ended, what was committed is written down.
    ///
    /// # Panics
    ///
    /// If it does not stop.
    pub async fn stop(&self) {
        self.control(&["stop", "-m", "fast", "-w"]).await;
    }

    /// Ends it as a crash does; what was committed is recovered at the restart.
    ///
    /// # Panics
    ///
    /// If it does not stop.
    pub async fn kill(&self) {
        self.control(&["stop", "-m", "immediate", "-w"]).await;
    }

    /// Starts it again, at the same address and with the same data.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn restart(&self) {
        let options = self.options_at(self.address);
        self.control(&["start", "-w", "-s", "-l", "log", "-o", &options])
            .await;
    }

    async fn control(&self, arguments: &[&str]) {
        let mut command = self.command(&self.control);
        command.args(["-D", "data"]).args(arguments);
        let status = tokio::task::spawn_blocking(move || command.status()).await;
        let done = status.is_ok_and(|status| status.is_ok_and(|status| status.success()));
        assert!(
            done,
            "postgres refuses to {}: {}",
            arguments[0],
            self.folder.text("log")
        );
    }

    fn make(options: String) -> Self {
        let control = program("pg_ctl");
        let account = Account::instead_of_root("postgres");
        let end = format!("PG_CTL='{control}'; {AT_THE_END}");
        let folder = Folder::new("postgres", account, &end).expect("a temporary folder");
        let mut server = Self {
            folder,
            account,
            control,
            address: free_address(),
            options,
        };
        let mut init = server.command(&program("initdb"));
        init.args(["-D", "data", "-A", "trust", "-U", "postgres", "-E", "UTF8"]);
        init.args(["--locale=C", "--no-sync", "--no-instructions"]);
        assert!(succeeds(&mut init), "initdb fails; {HELP}");
        for _ in 0..PORTS {
            let options = server.options_at(server.address);
            let mut start = server.command(&server.control);
            start.args([
                "start", "-D", "data", "-w", "-s", "-l", "log", "-o", &options,
            ]);
            if succeeds(&mut start) {
                return server;
            }
            server.address = free_address();
        }
        panic!("postgres does not start: {}", server.folder.text("log"));
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env_remove("PGPORT")
            .env("LC_ALL", "C");
        // The server inherits them, and would hold whoever waits for their end.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(account) = self.account {
            account.run(&mut command);
        }
        command
    }

    fn options_at(&self, address: SocketAddr) -> String {
        let port = address.port();
        let quiet = "-c listen_addresses=127.0.0.1 -c unix_socket_directories=''";
        format!("-p {port} {quiet} -c max_connections=200 {}", self.options)
    }
}

fn program(name: &str) -> String {
    let path = find(name, VERSIONS);
    let path = path.unwrap_or_else(|| panic!("{name} is not installed; {HELP}"));
    path.display().to_string()
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
