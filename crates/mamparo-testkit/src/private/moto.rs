//! A server of one's own that answers as AWS does.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use tokio::sync::OnceCell;

use super::folder::Folder;
use super::programs::free_address;

/// The interpreter that scripts/test exports; without it, the one that scripts/peer-moto names and makes.
const PYTHON: &str = "MAMPARO_PEER_MOTO";

/// How long it may take to start, in steps of [`STEP`]: it reads a few thousand files.
const STEPS: usize = 3_000;
const STEP: Duration = Duration::from_millis(20);

/// As often as another port is tried, when someone else takes the free one first.
const PORTS: usize = 5;

/// What it runs, and says why.
const PROGRAM: &str = include_str!("moto.py");

const AT_THE_END: &str = "test -f pid && kill -9 $(cat pid)";

/// A moto server on a free port of 127.0.0.1: the services of AWS, forgetful, with any credentials; it ends when it is dropped.
///
/// Schedules of its EventBridge Scheduler never fire.
#[derive(Debug)]
pub struct PrivateMoto {
    folder: Folder,
    python: PathBuf,
    address: SocketAddr,
    process: Mutex<Option<Child>>,
}

impl PrivateMoto {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// If there is no Python with moto, or it doesn't start.
    pub async fn start() -> Self {
        let started = tokio::task::spawn_blocking(Self::make).await;
        started.expect("a server that is made")
    }

    /// Returns the one that all tests of this program share; it is never stopped before the program ends.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<PrivateMoto> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Returns the URL that a client sends to, for every service.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the interpreter that it runs in, which has boto3 and cfn-lint too.
    #[must_use]
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// Has it forget all.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub async fn reset(&self) {
        let address = self.address;
        let asked = tokio::task::spawn_blocking(move || ask(address, "POST /moto-api/reset")).await;
        let answer = asked
            .expect("a question that is asked")
            .expect("a server that answers");
        assert!(answer.contains(" 200 "), "{answer}");
    }

    /// Ends it as a crash does: it forgets all.
    ///
    /// # Panics
    ///
    /// If it can't be ended.
    pub async fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            child.kill().expect("a process that ends");
            child.wait().expect("a process that ends");
        }
        drop(std::fs::remove_file(self.folder.path().join("pid")));
    }

    /// Starts it again, at the same address and empty.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn restart(&self) {
        let started = self.launch();
        assert!(
            started,
            "moto does not start again: {}",
            self.folder.text("log")
        );
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make() -> Self {
        let folder = Folder::new("moto", None, AT_THE_END).expect("a temporary folder");
        let mut server = Self {
            folder,
            python: python(),
            address: free_address(),
            process: Mutex::new(None),
        };
        for _ in 0..PORTS {
            if server.launch() {
                return server;
            }
            server.address = free_address();
        }
        panic!("moto does not start: {}", server.folder.text("log"));
    }

    fn launch(&self) -> bool {
        let log =
            std::fs::File::create(self.folder.path().join("log")).expect("a file in its folder");
        let mut child = Command::new(&self.python)
            .current_dir(self.folder.path())
            .args(["-c", PROGRAM, &self.address.port().to_string()])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not run: {error}", self.python.display()));
        let number = child.id().to_string();
        std::fs::write(self.folder.path().join("pid"), number).expect("a file in its folder");
        for _ in 0..STEPS {
            if child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return false;
            }
            if ask(self.address, "GET /moto-api/data.json")
                .is_ok_and(|answer| answer.contains(" 200 "))
            {
                *self.child() = Some(child);
                return true;
            }
            sleep(STEP);
        }
        *self.child() = Some(child);
        false
    }
}

impl Drop for PrivateMoto {
    fn drop(&mut self) {
        if let Some(mut child) = self.child().take() {
            // It may have ended by itself; either way it is waited for, by the folder too.
            drop(child.kill());
            drop(child.wait());
        }
        drop(std::fs::remove_file(self.folder.path().join("pid")));
    }
}

fn python() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(python) = std::env::var_os(PYTHON) {
        return root.join(python);
    }
    let made = Command::new("bash")
        .arg(root.join("scripts/peer-moto"))
        .output();
    let made = made.expect("bash runs scripts/peer-moto");
    let complaint = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "no Python with moto: {complaint}");
    PathBuf::from(String::from_utf8_lossy(&made.stdout).trim())
}

/// One request without a body, and how its answer begins.
fn ask(address: SocketAddr, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let text = format!("{request} HTTP/1.0\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(text.as_bytes())?;
    let mut answer = [0; 256];
    let length = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}
