//! Descriptors from files.

use std::path::{Path, PathBuf};

use protox::{Compiler, Error};

use super::Schema;

/// Compiles a file and all that it imports, which is looked for in these folders, or beside it if there are none.
///
/// # Errors
///
/// Where it is wrong and why, in one line.
pub(crate) fn compile(file: &Path, folders: &[PathBuf]) -> Result<Schema, String> {
    let beside = [beside(file)];
    let folders = if folders.is_empty() { &beside } else { folders };
    let compiled = Compiler::new(folders).and_then(|mut compiler| {
        compiler.include_imports(true).open_file(file)?;
        Ok(compiler.descriptor_pool())
    });
    match compiled {
        Ok(pool) => Ok(Schema::new(pool)),
        Err(error) => Err(why(&error, file)),
    }
}

fn beside(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn why(error: &Error, file: &Path) -> String {
    // Its debug form begins with where it is.
    let place = format!("{error:?}");
    let place = place.lines().next().unwrap_or_default().to_owned();
    let mut why = if place.contains(&error.to_string()) {
        place
    } else {
        format!("{}: {error}", file.display())
    };
    for cause in mamparo_core::chain::chain(error).skip(1) {
        why += &format!(": {cause}");
    }
    if error.is_file_not_found() {
        why += ": name the folder that it is under with --proto-path";
    }
    why
}
