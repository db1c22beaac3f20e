//! The workspace's files, as the checks read them.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold no source of ours.
const SKIPPED: &[&str] = &["target", "corpus", "artifacts"];

/// The workspace's root folder.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package stands in the workspace's root")
}

/// One text file: where it is, from the root, and what it says.
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

/// Every text file of the workspace, in order of its path.
pub(super) fn files() -> Vec<File> {
    let mut paths = Vec::new();
    walk(root(), &mut paths);
    paths.sort();
    paths.iter().filter_map(|path| read(path)).collect()
}

/// The text of the file at `path`, or nothing where there is none.
pub(super) fn text(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

/// Fails with every problem at once.
pub(super) fn report(problems: &[String]) {
    assert!(
        problems.is_empty(),
        "{} to mend:\n\n{}\n",
        problems.len(),
        problems.join("\n")
    );
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hidden = name.starts_with('.') && name != ".ci";
        if hidden || SKIPPED.contains(&name.as_ref()) {
            continue;
        }
        if path.is_dir() {
            walk(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

fn read(path: &Path) -> Option<File> {
    let text = fs::read_to_string(path).ok()?;
    let path = path.strip_prefix(root()).expect("below the root");
    let path = path.to_string_lossy().replace('\\', "/");
    Some(File { path, text })
}
