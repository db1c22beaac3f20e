//! Servers and workers that are processes of their own, and what they take of the processor.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};

/// The kernel's unit of processor time (`USER_HZ`), the same on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// A process that ends with its owner.
pub(crate) struct Process {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        // A server ends when its input does, however this one ends.
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Its next line; empty after the last.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it took of the processor so far; nothing where there is no `/proc`.
    pub(crate) fn busy(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks = after_name.split_whitespace().skip(11).take(2);
        TICK * ticks.filter_map(|ticks| ticks.parse::<u32>().ok()).sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What a script of `scripts/` prints, which installs or builds peers; says so and returns none where it can't.
pub(crate) fn peers(script: &str, arguments: &[&str]) -> Option<PathBuf> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut command = Command::new("bash");
    command.arg(format!("scripts/{script}")).args(arguments);
    command.current_dir(root).stderr(Stdio::inherit());
    let done = command
        .output()
        .ok()
        .filter(|output| output.status.success());
    let Some(done) = done else {
        println!("SKIPPED: the peers of scripts/{script}, which says why above");
        return None;
    };
    let path = String::from_utf8(done.stdout).unwrap();
    Some(path.trim_end().into())
}

/// The peers in Rust, built as this program is.
pub(crate) fn rust_peers() -> Option<PathBuf> {
    peers(
        "peer-rust",
        &[if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        }],
    )
}

/// A table as the documentation has it, names before numbers.
pub(crate) fn table(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(columns);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.add_rows(rows);
    table
}

/// The middle one.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
