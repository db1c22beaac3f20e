//! A Redis of one's own.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use super::folder::Folder;
use super::programs::{Account, find, free_address};

/// How long it may take to start or to stop, in steps of [`STEP`].
const STEPS: usize = 500;
const STEP: Duration = Duration::from_millis(20);

/// As often as another port is tried, when someone else takes the free one first.
const PORTS: usize = 5;

const HELP: &str = "scripts/peers redis installs it where it can";

/// The end of its life, if nobody stops it before: at once, since its data are removed with it.
const AT_THE_END: &str = "test -f pid && kill -9 $(cat pid)";

/// A Redis server on a free port of 127.0.0.1 with data of its own; it ends when it is dropped.
#[derive(Debug)]
pub struct PrivateRedis {
    folder: Folder,
    account: Option<Account>,
    program: PathBuf,
    address: SocketAddr,
    options: Vec<String>,
    process: Mutex<Option<Child>>,
}

impl PrivateRedis {
    /// Starts one that forgets all when it ends.
    ///
    /// # Panics
    ///
    /// If it is not installed, or doesn't start.
    pub async fn start() -> Self {
        Self::with(&["--appendonly", "no"]).await
    }

    /// Starts one that has what it is asked to keep on its disk before it answers (`appendfsync always`).
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub async fn durable() -> Self {
        Self::with(&["--appendonly", "yes", "--appendfsync", "always"]).await
    }

    /// Starts one with these options of the command `redis-server`.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub async fn with(options: &[&str]) -> Self {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let started = tokio::task::spawn_blocking(move || Self::make(options));
        started.await.expect("a server that is made")
    }

    /// Returns the URL that a client connects to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs a command of words without spaces, and returns what it answers, as it stands on the wire.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub async fn command(&self, command: &str) -> String {
        let (address, line) = (self.address, format!("{command}\r\n"));
        let answered = tokio::task::spawn_blocking(move || ask(address, &line)).await;
        let answered = answered.expect("a question that is asked");
        answered.unwrap_or_else(|error| panic!("redis does not answer {command}: {error}"))
    }

    /// Stops it as an operator does: what it keeps is written down.
    ///
    /// # Panics
    ///
    /// If it does not stop.
    pub async fn stop(&self) {
        // It answers by closing the connection.
        drop(ask(self.address, "SHUTDOWN\r\n"));
        self.ended();
    }

    /// Ends it as a crash does.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub async fn kill(&self) {
        if let Some(child) = self.child().as_mut() {
            child.kill().expect("a process that ends");
        }
        self.ended();
    }

    /// Starts it again, at the same address and with what it has kept.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn restart(&self) {
        let started = self.launch();
        assert!(
            started,
            "redis does not start again: {}",
            self.folder.text("log")
        );
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its end, after which its number may be another process's.
    fn ended(&self) {
        if let Some(mut child) = self.child().take() {
            child.wait().expect("a process that ends");
        }
        drop(std::fs::remove_file(self.folder.path().join("pid")));
    }

    fn make(options: Vec<String>) -> Self {
        let program = find("redis-server", "/usr/lib/redis");
        let program = program.unwrap_or_else(|| panic!("redis-server is not installed; {HELP}"));
        let account = Account::instead_of_root("redis");
        let folder = Folder::new("redis", account, AT_THE_END).expect("a temporary folder");
        let mut server = Self {
            folder,
            account,
            program,
            address: free_address(),
            options,
            process: Mutex::new(None),
        };
        for _ in 0..PORTS {
            if server.launch() {
                return server;
            }
            server.address = free_address();
        }
        panic!("redis does not start: {}", server.folder.text("log"));
    }

    fn launch(&self) -> bool {
        let mut command = Command::new(&self.program);
        command.current_dir(self.folder.path());
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &self.address.port().to_string(),
        ]);
        command.args([
            "--save",
            "",
            "--dir",
            ".",
            "--logfile",
            "log",
            "--pidfile",
            "pid",
        ]);
        command.args(&self.options);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(account) = self.account {
            account.run(&mut command);
        }
        let mut child = command.spawn().expect("a program that runs");
        let number = child.id().to_string();
        std::fs::write(self.folder.path().join("pid"), number).expect("a file in its folder");
        for _ in 0..STEPS {
            if child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return false;
            }
            if ask(self.address, "PING\r\n").is_ok_and(|answer| answer.starts_with("+PONG")) {
                *self.child() = Some(child);
                return true;
            }
            sleep(STEP);
        }
        *self.child() = Some(child);
        false
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        if let Some(mut child) = self.child().take() {
            // It may have ended by itself; either way it is waited for, by the folder too.
            drop(child.kill());
            drop(child.wait());
        }
        drop(std::fs::remove_file(self.folder.path().join("pid")));
    }
}

/// One command as a line, and what comes back at first.
fn ask(address: SocketAddr, line: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(line.as_bytes())?;
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}
