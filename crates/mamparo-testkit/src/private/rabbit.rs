//! A RabbitMQ of one's own.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use tokio::sync::OnceCell;

use super::folder::Folder;
use super::programs::{Account, find};

/// How long it may take to start or to stop, in steps of [`STEP`]: on a busy machine it is slow.
const STEPS: usize = 1800;
const STEP: Duration = Duration::from_millis(50);

/// As often as other ports are tried, when someone else takes a free one first.
const TRIES: usize = 3;

/// The scripts themselves: those in `PATH` on Debian change the user.
const SCRIPTS: &str = "/usr/lib/rabbitmq";

const HELP: &str = "scripts/peers rabbitmq installs it where it can";

/// What a client of AMQP 0-9-1 says first.
const HELLO: &[u8] = b"AMQP\x00\x00\x09\x01";

/// The end of its life, if nobody stops it before: at once, since its data are removed with it.
const AT_THE_END: &str = "for file in pid epmd; do test -f $file && kill -9 -$(cat $file); done";

/// A RabbitMQ on free ports of 127.0.0.1 with data of its own; it ends when it is dropped.
///
/// It has the user `guest` with the password `guest`. It takes long to start: tests that don't stop it share one.
#[derive(Debug)]
pub struct PrivateRabbit(Arc<Server>);

#[derive(Debug)]
struct Server {
    folder: Folder,
    account: Option<Account>,
    server: PathBuf,
    epmd: PathBuf,
    ports: Ports,
    running: Mutex<Option<Running>>,
}

/// Where it is spoken to: by clients, by its own tools, and who tells those where.
#[derive(Clone, Copy, Debug)]
struct Ports {
    clients: SocketAddr,
    tools: SocketAddr,
    names: SocketAddr,
}

/// The server, and who knows its name.
#[derive(Debug)]
struct Running {
    server: Child,
    names: Child,
}

impl PrivateRabbit {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// If it is not installed, or doesn't start.
    pub async fn start() -> Self {
        let started = tokio::task::spawn_blocking(Server::make);
        Self(Arc::new(started.await.expect("a server that is made")))
    }

    /// Returns the one that all tests of this program share; it is never stopped before the program ends.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<PrivateRabbit> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Returns the URL that a client connects to.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.address())
    }

    /// Returns the URL that a client connects to behind a proxy.
    #[must_use]
    pub fn url_at(&self, proxy: SocketAddr) -> String {
        format!("amqp://guest:guest@{proxy}/%2f")
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.ports.clients
    }

    /// Returns the folder that its data and its log are in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.0.folder.path()
    }

    /// Stops it as an operator does: connections are closed, what it keeps is written down.
    ///
    /// # Panics
    ///
    /// If it does not stop.
    pub async fn stop(&self) {
        self.apart(|server| server.end("TERM")).await;
    }

    /// Ends it as a crash does, by `kill -9`; what it had confirmed is there after a restart.
    ///
    /// # Panics
    ///
    /// If it does not stop.
    pub async fn kill(&self) {
        self.apart(|server| server.end("KILL")).await;
    }

    /// Starts it again, at the same address and with what it has kept.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn restart(&self) {
        let started = self.apart(Server::launch).await;
        assert!(started, "rabbitmq does not start again: {}", self.0.log());
    }

    /// Does what takes seconds where it holds nobody.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Server) -> T + Send + 'static,
    ) -> T {
        let server = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&server)).await;
        done.expect("a server that does as it is told")
    }
}

impl Server {
    fn log(&self) -> String {
        format!(
            "{}\n{}",
            self.folder.text("out"),
            self.folder.text("log/server.log")
        )
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a signal to the server and waits for its end.
    fn end(&self, signal: &str) {
        let Some(running) = self.running().take() else {
            return;
        };
        // The whole group: the program itself is a child of the script that starts it.
        let group = format!("-{}", running.server.id());
        let mut kill = Command::new("kill");
        let sent = kill
            .args(["-s", signal, "--", &group])
            .stderr(Stdio::null())
            .status();
        drop(sent); // of one that ended by itself, nothing is left to be told
        self.buried(running);
    }

    /// Waits until it is gone, and ends who knows its name.
    fn buried(&self, mut running: Running) {
        drop(running.server.wait());
        // The script is gone; the program may still be about to.
        for _ in 0..STEPS {
            if TcpStream::connect(self.ports.tools).is_err() {
                break;
            }
            sleep(STEP);
        }
        drop(running.names.kill());
        drop(running.names.wait());
        for file in ["pid", "epmd"] {
            drop(fs::remove_file(self.folder.path().join(file)));
        }
    }

    fn make() -> Self {
        let [server, epmd] = ["rabbitmq-server", "epmd"].map(|name| {
            let inner = Path::new(SCRIPTS).join("bin").join(name);
            let program = inner.is_file().then_some(inner);
            let program = program.or_else(|| find(name, SCRIPTS));
            program.unwrap_or_else(|| panic!("{name} is not installed; {HELP}"))
        });
        let account = Account::instead_of_root("rabbitmq");
        let folder = Folder::new("rabbitmq", account, AT_THE_END).expect("a temporary folder");
        let mut made = Self {
            folder,
            account,
            server,
            epmd,
            ports: Ports::free(),
            running: Mutex::new(None),
        };
        for _ in 0..TRIES {
            if made.launch() {
                return made;
            }
            made.ports = Ports::free();
        }
        panic!("rabbitmq does not start: {}", made.log());
    }

    fn launch(&self) -> bool {
        self.configure().expect("files in its folder");
        let mut names = self.command(&self.epmd);
        names.args([
            "-address",
            "127.0.0.1",
            "-port",
            &self.ports.names.port().to_string(),
        ]);
        let names = self.spawn(names, "epmd");
        let mut server = self.command(&self.server);
        let path = |name: &str| self.folder.path().join(name);
        server
            .env(
                "RABBITMQ_NODENAME",
                format!("rabbit{}@localhost", self.ports.clients.port()),
            )
            .env("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins"))
            .env("RABBITMQ_MNESIA_BASE", path("data"))
            .env("RABBITMQ_LOG_BASE", path("log"))
            .env("RABBITMQ_LOGS", path("log/server.log"))
            .env("RABBITMQ_PID_FILE", path("server.pid"))
            .env("RABBITMQ_DIST_PORT", self.ports.tools.port().to_string())
            // Its threads would spin for a while before they sleep.
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "+sbwt none +sbwtdcpu none +sbwtdio none",
            );
        let server = self.spawn(server, "pid");
        *self.running() = Some(Running { server, names });
        for _ in 0..STEPS {
            if self.has_ended() {
                break;
            }
            if greets(self.ports.clients).unwrap_or(false) {
                return true;
            }
            sleep(STEP);
        }
        self.end("KILL");
        false
    }

    fn configure(&self) -> io::Result<()> {
        let clients = self.ports.clients;
        let lines = [
            format!("listeners.tcp.local = {clients}"),
            "distribution.listener.interface = 127.0.0.1".to_owned(),
            "disk_free_limit.absolute = 50MB".to_owned(),
            "raft.wal_max_size_bytes = 64000000".to_owned(),
        ];
        fs::write(
            self.folder.path().join("rabbitmq.conf"),
            lines.join("\n") + "\n",
        )?;
        fs::write(self.folder.path().join("plugins"), "[].\n")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            // Its secret cookie lies there.
            .env("HOME", self.folder.path())
            .env("LC_ALL", "C.UTF-8")
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", self.ports.names.port().to_string())
            .process_group(0)
            .stdin(Stdio::null());
        if let Some(account) = self.account {
            account.run(&mut command);
        }
        command
    }

    /// Starts a group of processes whose number is in that file as long as it runs.
    fn spawn(&self, mut command: Command, file: &str) -> Child {
        let out = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("out"));
        let out = out.expect("a file in its folder");
        let both = out.try_clone().expect("a file that is open");
        let child = command
            .stdout(out)
            .stderr(both)
            .spawn()
            .expect("a program that runs");
        let number = child.id().to_string();
        fs::write(self.folder.path().join(file), number).expect("a file in its folder");
        child
    }

    fn has_ended(&self) -> bool {
        let mut running = self.running();
        running
            .as_mut()
            .is_none_or(|running| running.server.try_wait().is_ok_and(|end| end.is_some()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end("KILL");
    }
}

impl Ports {
    fn free() -> Self {
        // All at once, so that no two are the same.
        let [clients, tools, names] =
            [(); 3].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
        let address =
            |listener: &TcpListener| listener.local_addr().expect("a bound socket's address");
        Self {
            clients: address(&clients),
            tools: address(&tools),
            names: address(&names),
        }
    }
}

/// Whether a broker answers a client's first words.
fn greets(address: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(HELLO)?;
    let mut frame = [0];
    stream.read_exact(&mut frame)?;
    // A frame of a method: connection.start.
    Ok(frame == [1])
}
