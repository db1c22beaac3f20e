//! The check again and again, whenever a file has changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::exit::Exit;
use crate::output;
use crate::policies::files;

/// How often files are looked at.
const EVERY: Duration = Duration::from_millis(250);

/// A file as it was seen; none where it is not there.
type Seen = (PathBuf, Option<(u64, Option<SystemTime>)>);

/// Checks until somebody stops it, or does not want the report any more.
pub(super) async fn watch(paths: &[PathBuf], check: impl Fn() -> Exit) -> Exit {
    let mut hangups = match Hangups::new() {
        Ok(hangups) => hangups,
        Err(error) => {
            output::error(&format!("SIGHUP can't be waited for: {error}"));
            return Exit::Usage;
        }
    };
    loop {
        let seen = look(paths);
        output::clear();
        if check() == Exit::Unwritten {
            return Exit::Unwritten;
        }
        output::note("watching: checks again when a file changes, or on SIGHUP");
        tokio::select! {
            () = hangups.next() => {}
            () = changed(paths, &seen) => {}
        }
    }
}

/// Waits until something has changed, and then stays as it is.
async fn changed(paths: &[PathBuf], seen: &[Seen]) {
    let mut last = look(paths);
    loop {
        tokio::time::sleep(EVERY).await;
        let now = look(paths);
        if now != seen && now == last {
            return;
        }
        last = now;
    }
}

fn look(paths: &[PathBuf]) -> Vec<Seen> {
    // A folder that can't be read is checked again once it can.
    let files = paths
        .iter()
        .flat_map(|path| files(path).unwrap_or_default());
    files.map(|file| (file.clone(), mark(&file))).collect()
}

fn mark(file: &Path) -> Option<(u64, Option<SystemTime>)> {
    let about = fs::metadata(file).ok()?;
    Some((about.len(), about.modified().ok()))
}

/// The signals that ask for a check.
#[cfg(unix)]
struct Hangups(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Hangups {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::hangup()).map(Self)
    }

    async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Elsewhere there is no such signal.
#[cfg(not(unix))]
struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        std::future::pending().await
    }
}
