//! A waterfall's lines.

use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::rows::{Mark, Row};

/// No bar is drawn shorter than this, however narrow the terminal.
const MIN_BAR: usize = 10;

/// A wider bar says no more.
const MAX_BAR: usize = 60;

/// As wide as a time is written.
const TIME: usize = 8;

const DIM: Style = Style::new().dimmed();

impl Mark {
    const fn glyph(self) -> &'static str {
        match self {
            Self::Whole => "─",
            Self::Good | Self::Bad => "━",
            Self::Wait => "·",
        }
    }

    const fn style(self) -> Style {
        match self {
            Self::Whole => Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Wait => DIM,
        }
    }
}

/// Draws rows as lines of at most `width` columns, where their words fit.
///
/// Each has what it is, a bar, when it began, how long it took and how it ended.
pub(crate) fn draw(rows: &[Row], width: usize) -> Vec<String> {
    let widest = |text: fn(&Row) -> &str| {
        let widths = rows.iter().map(|row| text(row).chars().count());
        widths.max().unwrap_or(0)
    };
    let label = widest(|row| &row.label);
    let says = widest(|row| &row.says);
    let bar = width.saturating_sub(label + says + 2 * TIME + 6);
    let bar = bar.clamp(MIN_BAR, MAX_BAR);
    let ends = rows.iter().map(|row| row.start + row.length);
    let whole = ends.max().unwrap_or_default();
    rows.iter()
        .map(|row| line(row, label, bar, whole))
        .collect()
}

fn line(row: &Row, label: usize, bar: usize, whole: Duration) -> String {
    let (before, drawn) = place(row, whole, bar);
    let after = bar - before - drawn;
    let style = row.mark.style();
    let glyphs = row.mark.glyph().repeat(drawn);
    let name = &row.label;
    let (start, length) = (millis(row.start), millis(row.length));
    let length = format!("+{length}");
    let says = &row.says;
    format!(
        "{name:label$}  {:before$}{style}{glyphs}{style:#}{:after$} {DIM}{start:>TIME$}{DIM:#} {length:>TIME$}  {style}{says}{style:#}",
        "", ""
    )
}

/// Where a row's bar begins, and how long it is: at least one column, and never past the end.
fn place(row: &Row, whole: Duration, bar: usize) -> (usize, usize) {
    let scale = |time: Duration| {
        let share = time.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE);
        (share * bar as f64).round() as usize
    };
    let before = scale(row.start).min(bar - 1);
    let end = scale(row.start + row.length).clamp(before + 1, bar);
    (before, end - before)
}

/// Writes a duration for people.
pub(crate) fn millis(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if millis < 9.95 {
        format!("{millis:.1} ms")
    } else if millis < 9_999.5 {
        format!("{millis:.0} ms")
    } else {
        format!("{:.1} s", millis / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, mark: Mark, start: u64, length: u64, says: &str) -> Row {
        Row {
            label: label.to_owned(),
            mark,
            start: Duration::from_millis(start),
            length: Duration::from_millis(length),
            says: says.to_owned(),
        }
    }

    fn plain(lines: &[String]) -> Vec<String> {
        let strip = |line: &String| anstream::adapter::strip_str(line).to_string();
        lines.iter().map(strip).collect()
    }

    #[test]
    fn bars_are_to_scale_and_a_short_one_still_shows() {
        let rows = [
            row("catalog", Mark::Whole, 0, 100, "success"),
            row("  attempt 1", Mark::Bad, 0, 0, "503"),
            row("  wait", Mark::Wait, 0, 50, "unavailable: backoff"),
            row("  attempt 2", Mark::Good, 50, 50, "200, resend 1"),
        ];
        let lines = plain(&draw(&rows, 60));
        assert_eq!(
            lines,
            [
                "catalog      ──────────   0.0 ms  +100 ms  success",
                "  attempt 1  ━            0.0 ms  +0.0 ms  503",
                "  wait       ·····        0.0 ms   +50 ms  unavailable: backoff",
                "  attempt 2       ━━━━━    50 ms   +50 ms  200, resend 1",
            ]
        );
    }

    #[test]
    fn a_waterfall_that_took_no_time_is_drawn_too() {
        let lines = draw(&[row("catalog", Mark::Whole, 0, 0, "")], 60);
        assert_eq!(lines.len(), 1);
        assert!(draw(&[], 60).is_empty());
    }

    #[test]
    fn a_wide_terminal_gets_a_longer_bar() {
        let rows = [row("catalog", Mark::Whole, 0, 100, "success")];
        let bar = |width| draw(&rows, width)[0].matches('─').count();
        assert!(bar(60) < bar(80) && bar(200) == MAX_BAR);
    }

    #[test]
    fn a_duration_is_written_as_short_as_it_can_be_read() {
        let written: Vec<_> = [0, 1_340, 9_960, 303_000, 12_340_000]
            .map(|micros| millis(Duration::from_micros(micros)))
            .into();
        assert_eq!(written, ["0.0 ms", "1.3 ms", "10 ms", "303 ms", "12.3 s"]);
    }
}
