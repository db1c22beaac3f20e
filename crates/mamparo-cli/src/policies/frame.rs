//! A finding with the line that it is about.

use std::fs::File;
use std::io::Read;

use super::Finding;
use crate::output::{self, Mood, painted};

/// As much of a file is read to show a line of it.
const MAX_BYTES: u64 = 1 << 20;

/// The finding, the line of the file around it, and the remedy.
pub(crate) fn framed(finding: &Finding) -> String {
    let Finding {
        severity,
        code,
        path,
        message,
        remedy,
        ..
    } = finding;
    let mood = if finding.is_error() {
        Mood::Bad
    } else {
        Mood::Doubtful
    };
    let head = painted(mood, &format!("{severity}[{code}]:"));
    let about = match path.is_empty() {
        true => String::new(),
        false => format!("{}: ", plain(path)),
    };
    let mut text = format!("{head} {about}{}\n", plain(message));
    match (&finding.file, finding.line, &finding.environment) {
        (Some(file), Some(line), _) => place(&mut text, file, line),
        (_, _, Some(name)) => {
            let arrow = painted(Mood::Frame, "-->");
            text.push_str(&format!("  {arrow} environment variable {name}\n"));
        }
        _ => {}
    }
    let mark = painted(Mood::Frame, "=");
    text.push_str(&format!("  {mark} remedy: {}\n", plain(remedy)));
    text
}

fn place(text: &mut String, file: &str, line: u32) {
    let arrow = painted(Mood::Frame, "-->");
    text.push_str(&format!("  {arrow} {}:{line}\n", plain(file)));
    if let Some(written) = written(file, line) {
        let margin = painted(Mood::Frame, &format!("{line:>5} |"));
        text.push_str(&format!("{margin} {written}\n"));
    }
}

/// The line of a file, as far as it can be shown.
fn written(file: &str, line: u32) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(file).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let at = usize::try_from(line.checked_sub(1)?).ok()?;
    let line = text.lines().nth(at)?.trim_end();
    let width = output::width().saturating_sub("      | …".len());
    let mut shown = plain(&line.chars().take(width).collect::<String>());
    if line.chars().nth(width).is_some() {
        shown.push('…');
    }
    (!shown.trim().is_empty()).then_some(shown)
}

fn plain(text: &str) -> String {
    output::plain_lines(&text.replace('\t', "    "))
}
