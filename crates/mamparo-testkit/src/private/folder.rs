//! A folder that is removed when its owner is gone, whatever became of the owner.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::programs::Account;

/// The folder, and a shell that outlives this process by a moment: when its input ends, it runs a command, then removes the
/// folder.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    guard: Child,
    /// Ends with this process, also by a signal that it can't catch.
    input: Option<ChildStdin>,
}

impl Folder {
    /// Makes a folder of that account, and has `at_the_end` run by a shell in it.
    pub(super) fn new(name: &str, account: Option<Account>, at_the_end: &str) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("mamparo-{name}-{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        let mut shell = Command::new("sh");
        // Signals for the whole group, as by Ctrl-C, are not for the guard.
        let script = format!(
            "trap '' INT TERM HUP; cat; {at_the_end}; cd /; rm -rf '{}'",
            path.display()
        );
        shell
            .args(["-c", &script])
            .current_dir(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(account) = account {
            account.own(&path)?;
            account.run(&mut shell);
        }
        let mut guard = shell.spawn()?;
        let input = guard.stdin.take();
        Ok(Self { path, guard, input })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What was written to a file in it.
    pub(super) fn text(&self, file: &str) -> String {
        let mut text = String::new();
        let read = fs::File::open(self.path.join(file))
            .and_then(|mut file| file.read_to_string(&mut text));
        read.map_or_else(|error| error.to_string(), |_| text)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.input.take();
        // It ends at the end of its input; nobody could do anything about a failure.
        drop(self.guard.wait());
    }
}
