//! Whose programs are run, and where they are.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user of the machine that a server runs as, because it refuses to run as root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    user: u32,
    group: u32,
}

impl Account {
    /// The account of that name if this process is root's, which may take it on; `None` if there's no need.
    pub(super) fn instead_of_root(name: &str) -> Option<Self> {
        let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        root.then(|| Self::read(&accounts, name))?
    }

    /// Finds a name in lines of `name:password:user:group:…`.
    pub(super) fn read(accounts: &str, name: &str) -> Option<Self> {
        let mut lines = accounts
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>());
        let fields = lines.find(|fields| fields.first() == Some(&name))?;
        let number = |field: usize| fields.get(field)?.parse().ok();
        Some(Self {
            user: number(2)?,
            group: number(3)?,
        })
    }

    pub(super) fn own(self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.user), Some(self.group))
    }

    pub(super) fn run(self, command: &mut Command) {
        command.uid(self.user).gid(self.group);
    }
}

/// Where a program is: in `PATH`, or in the newest of the folders that match `{parent}/*/bin`.
pub(super) fn find(program: &str, parent: &str) -> Option<PathBuf> {
    let versions = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort_by_key(|folder| version(folder));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).chain(folders.into_iter().rev());
    all.map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The number in `…/15/bin`.
fn version(folder: &Path) -> u32 {
    let name = folder.parent().and_then(Path::file_name);
    name.and_then(|name| name.to_str()?.parse().ok())
        .unwrap_or(0)
}

/// An address that nobody listens on for now.
pub(super) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("a bound socket's address")
}
