//! The one place that prints. Colour shows on a terminal only, and not where `NO_COLOR` is set.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use bytes::Bytes;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// What stands around what matters.
const FRAME: Style = AnsiColor::BrightBlue.on_default();

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

/// Clears the terminal, if stdout is one.
pub(crate) fn clear() {
    if io::stdout().is_terminal() {
        drop(write!(io::stdout().lock(), "\x1b[2J\x1b[H"));
    }
}

/// Escapes what would steer a terminal, or reorder what it shows, and keeps what it says in one line: for texts that others chose.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let reorders = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || reorders {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// The same for a text of several lines.
pub(crate) fn plain_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(plain).collect();
    lines.join("\n")
}

/// Says on stdout whether something holds.
pub(crate) fn verdict(holds: bool, line: &str) {
    if holds {
        say(&format!("{GOOD}ok{GOOD:#}      {line}"));
    } else {
        say(&format!("{ERROR}FAILED{ERROR:#}  {line}"));
    }
}

/// Paints a word that names something bad, something doubtful, something good, or what stands around it.
pub(crate) fn painted(mood: Mood, text: &str) -> String {
    let style = match mood {
        Mood::Bad => ERROR,
        Mood::Doubtful => WARNING,
        Mood::Good => GOOD,
        Mood::Frame => FRAME,
    };
    format!("{style}{text}{style:#}")
}

/// How a word is painted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mood {
    Bad,
    Doubtful,
    Good,
    Frame,
}

/// Writes a report to stdout, with its colours where a terminal shows them.
pub(crate) fn report(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
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

/// Writes a piece of a body to stdout, for whoever reads to have at once; a slow reader does not stop the clocks.
pub(crate) async fn piece(bytes: Bytes) -> io::Result<()> {
    tokio::task::spawn_blocking(move || all(&bytes)).await?
}
