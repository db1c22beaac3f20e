//! The one place that prints. Colour shows on a terminal only, and not where `NO_COLOR` is set.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use bytes::Bytes;
use tokio::io::AsyncWriteExt;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// How wide lines are where no terminal says it.
const WIDTH: usize = 100;

/// A line narrower or wider than these can't be read.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=160;

/// Says on stderr why the command failed.
pub(crate) fn error(line: &str) {
    note(&format!("{ERROR}error:{ERROR:#} {line}"));
}

/// Says on stderr what went wrong beside the command.
pub(crate) fn warning(line: &str) {
    note(&format!("{WARNING}warning:{WARNING:#} {line}"));
}

/// Writes a line to stderr. There is nobody to tell when that fails.
pub(crate) fn note(line: &str) {
    drop(writeln!(anstream::stderr().lock(), "{line}"));
}

/// Writes a line to stdout. Whoever closed it does not want the rest either.
pub(crate) fn say(line: &str) {
    drop(writeln!(anstream::stdout().lock(), "{line}"));
}

/// Says on stdout whether something holds.
pub(crate) fn verdict(holds: bool, line: &str) {
    if holds {
        say(&format!("{GOOD}ok{GOOD:#}      {line}"));
    } else {
        say(&format!("{ERROR}FAILED{ERROR:#}  {line}"));
    }
}

/// Writes all of it to stdout.
pub(crate) fn all(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Returns how wide lines may be.
pub(crate) fn width() -> usize {
    let size = terminal_size::terminal_size();
    let width = size.map_or(WIDTH, |(width, _)| usize::from(width.0));
    width.clamp(*WIDTHS.start(), *WIDTHS.end())
}

/// Stdout, for bytes that arrive bit by bit; a slow reader of it does not stop the clocks.
#[derive(Debug)]
pub(crate) struct Stdout(tokio::io::Stdout);

impl Stdout {
    pub(crate) fn new() -> Self {
        Self(tokio::io::stdout())
    }

    /// Writes a piece that whoever reads may use at once.
    pub(crate) async fn write(&mut self, bytes: &Bytes) -> io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.flush().await
    }
}
