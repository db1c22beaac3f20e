//! From what was typed to policies.

use std::path::{Path, PathBuf};
use std::{fs, io};

use mamparo::policy::Format;

/// As many files are read of one folder.
const MAX_FILES: usize = 1_000;

/// The policy files at a path: itself, or those of a folder in the order of their names.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let shown = path.display();
    let about = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{shown}: there is no such file"),
        _ => format!("{shown} can't be read: {error}"),
    })?;
    if !about.is_dir() {
        if Format::of(path).is_none() {
            return Err(format!(
                "{shown}: its ending says no format that is known: call it .toml, .yaml, .yml or .json"
            ));
        }
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error| format!("{shown} can't be read: {error}");
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if Format::of(&file).is_some() && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    match files.len() {
        0 => Err(format!(
            "{shown}: no policy file is in that folder: they end in .toml, .yaml, .yml or .json"
        )),
        1..=MAX_FILES => Ok(files),
        many => Err(format!(
            "{shown}: {many} files are in that folder, and {MAX_FILES} are read at most: name those that are meant"
        )),
    }
}
