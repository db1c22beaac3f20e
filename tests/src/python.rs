//! Programs of tests/peers, run by a Python that has what they import.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tokio::process::Command;

/// The interpreter that scripts/test exports; without it, the one that scripts/peer-python names and makes.
const PYTHON: &str = "MAMPARO_PEER_PYTHON";

/// What to do when it does not run.
pub(crate) const HELP: &str = "scripts/peer-python makes a Python with packages in target/tools, remove the one there to have it made anew";

/// A command that runs a program of tests/peers; its arguments follow.
pub(crate) fn program(script: &str) -> Command {
    let mut command = Command::new(python());
    command
        .arg(root().join("tests/peers").join(script))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .kill_on_drop(true);
    command
}

fn python() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| match std::env::var_os(PYTHON) {
        Some(python) => root().join(python),
        None => made(),
    })
}

fn made() -> PathBuf {
    let script = root().join("scripts/peer-python");
    let made = std::process::Command::new("bash").arg(script).output();
    let made = made.expect("bash runs scripts/peer-python");
    let complaint = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "no Python: {complaint}");
    PathBuf::from(String::from_utf8_lossy(&made.stdout).trim())
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
