//! A file, read whole and within bounds.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::{toml, yaml};
use crate::policy::tree::{Origin, Table};
use crate::policy::{Format, Problem};

/// The largest file that is read, 1 MiB: a thousand dependencies take a third of it.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// As many dots as stand in the keys of a line of TOML. Brackets are counted by its parser.
const MAX_DOTS: usize = 16;

/// As many columns as a line of YAML is indented.
const MAX_INDENTED: usize = 256;

/// Reads a file; its format goes by its ending.
pub(in crate::policy) fn read(path: &Path) -> Result<Table, Box<Problem>> {
    let name: Arc<str> = path.display().to_string().into();
    let format = Format::of(path).ok_or_else(|| {
        refuse(
            &name,
            "unknown-format",
            "its ending says no format that is known".to_owned(),
            "call it .toml, .yaml, .yml or .json",
        )
    })?;
    let document = whole(path).map_err(|error| unreadable(&name, &error))?;
    text(&name, &document, format)
}

/// Reads a document.
pub(in crate::policy) fn text(
    name: &Arc<str>,
    document: &str,
    format: Format,
) -> Result<Table, Box<Problem>> {
    if let Some(at) = document.find('\0') {
        let line = document
            .get(..at)
            .map_or(0, |before| before.matches('\n').count());
        let message = format!("line {} has a NUL byte: this is no text", line + 1);
        return Err(refuse(
            name,
            "not-a-text",
            message,
            "write it anew as UTF-8 text",
        ));
    }
    if document.len() as u64 > MAX_BYTES {
        return Err(unreadable(name, &io::ErrorKind::FileTooLarge.into()));
    }
    if let Some(line) = too_deep(document, format) {
        let message = format!("line {line} is nested deeper than any setting stands");
        let remedy = "a setting stands at most four tables deep";
        return Err(refuse(name, "nested-too-deep", message, remedy));
    }
    match format {
        Format::Toml => toml::parse(name, document),
        Format::Yaml | Format::Json => yaml::parse(name, document),
    }
}

/// The line that nests too deep, from 1, where the parsers would follow it until there is no stack left.
fn too_deep(document: &str, format: Format) -> Option<usize> {
    let is_deep = |line: &&str| match format {
        Format::Toml => dots(line) > MAX_DOTS,
        Format::Yaml | Format::Json => indented(line) > MAX_INDENTED,
    };
    let (before, _) = document
        .lines()
        .enumerate()
        .find(|(_, line)| is_deep(line))?;
    Some(before + 1)
}

/// How many dots of a line stand between the parts of a key, or in a number: in no text, and in no comment.
fn dots(line: &str) -> usize {
    // Of a text over several lines, a line does not tell what is inside.
    if line.contains("\"\"\"") || line.contains("'''") {
        return line.matches('.').count();
    }
    let (mut quote, mut escaped, mut dots) = (None, false, 0);
    for it in line.chars() {
        match quote {
            _ if escaped => escaped = false,
            Some('"') if it == '\\' => escaped = true,
            Some(begun) if it == begun => quote = None,
            Some(_) => {}
            None => match it {
                '"' | '\'' => quote = Some(it),
                '#' => break,
                '.' => dots += 1,
                _ => {}
            },
        }
    }
    dots
}

/// How far in a line's first word stands, behind spaces and what begins an item or a key.
fn indented(line: &str) -> usize {
    let inside = line.trim_start_matches([' ', '\t', '-', '?', ':']);
    line.len() - inside.len()
}

/// One handle for all that is read, so that a file that is replaced meanwhile is read old or new, never half of each; one that
/// is written to in its place is refused.
fn whole(path: &Path) -> io::Result<String> {
    let what = fs::metadata(path)?;
    if what.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // A pipe would be waited for until somebody writes to it.
    if !what.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut file = File::open(path)?;
    let before = file.metadata()?;
    let mut text = String::new();
    file.by_ref()
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let after = file.metadata()?;
    if after.len() != before.len() || after.modified().ok() != before.modified().ok() {
        return Err(io::Error::other("it was written to while it was read"));
    }
    Ok(text)
}

#[cold]
fn unreadable(name: &Arc<str>, error: &io::Error) -> Box<Problem> {
    let (message, remedy) = match error.kind() {
        io::ErrorKind::NotFound => (
            "there is no such file".to_owned(),
            "check its name and the folder that it is looked for in",
        ),
        io::ErrorKind::IsADirectory => ("it is a folder".to_owned(), "name the file in it"),
        io::ErrorKind::FileTooLarge => (
            format!("it is larger than {MAX_BYTES} bytes, the most that is read"),
            "split it: several files can be loaded together",
        ),
        io::ErrorKind::InvalidData => (
            "it is no UTF-8 text".to_owned(),
            "write it anew as UTF-8 text",
        ),
        _ => (
            format!("it can't be read: {error}"),
            "check its permissions",
        ),
    };
    refuse(name, "unreadable-file", message, remedy)
}

fn refuse(name: &Arc<str>, code: &'static str, message: String, remedy: &str) -> Box<Problem> {
    let origin = Origin::File {
        file: Arc::clone(name),
        line: 1,
        profile: None,
    };
    Box::new(Problem::error(code, &origin, "", message, remedy))
}
