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

/// As many columns has a bar of progress.
const BAR: usize = 40;

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

/// How far long work is: a line on stderr that is written over, while a person looks on, and gone in the end.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
}

impl Progress {
    /// Shows something only where it is `wanted`, and stderr is a terminal.
    pub(crate) fn new(wanted: bool) -> Self {
        let shown = wanted && io::stderr().is_terminal();
        Self { shown }
    }

    /// Shows that so many are done, of all of them where that is known.
    pub(crate) fn at(&self, done: usize, all: Option<usize>) {
        if self.shown {
            drop(write!(io::stderr().lock(), "\r\x1b[K{}", bar(done, all)));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            drop(write!(io::stderr().lock(), "\r\x1b[K"));
        }
    }
}

fn bar(done: usize, all: Option<usize>) -> String {
    let Some(all) = all.filter(|all| *all > 0) else {
        return format!("{done} done");
    };
    let full = done.min(all) * BAR / all;
    let (full, rest) = ("━".repeat(full), "─".repeat(BAR - full));
    format!("{full}{rest} {done} of {all}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        let full = |done| bar(done, Some(8)).matches('━').count();
        assert_eq!([full(0), full(4), full(8), full(9)], [0, 20, 40, 40]);
        assert!(bar(4, Some(8)).ends_with(" 4 of 8"));
        assert_eq!(bar(4, None), "4 done");
    }

    #[test]
    fn what_steers_a_terminal_is_spelled() {
        assert_eq!(plain("é \u{9b}1m\tb\u{202e}\n"), r"é \u{9b}1m\tb\u{202e}\n");
        assert_eq!(plain_lines("a\n\u{7}b"), "a\n\\u{7}b");
    }
}
