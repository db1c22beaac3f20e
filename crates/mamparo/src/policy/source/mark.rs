//! By what files are known to be the same.

use std::fs::{self, Metadata};
use std::path::PathBuf;
use std::time::SystemTime;

/// What the system says of some files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::policy) struct Marks(Vec<Option<Mark>>);

/// Length, time and identity; of what a link leads to.
type Mark = (u64, Option<SystemTime>, u64);

impl Marks {
    pub(in crate::policy) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Looks at files, of which some may not be there.
    pub(in crate::policy) fn of(paths: &[PathBuf]) -> Self {
        let mark = |path| {
            let what = fs::metadata(path).ok()?;
            Some((what.len(), what.modified().ok(), identity(&what)))
        };
        Self(paths.iter().map(mark).collect())
    }

    #[cfg(test)]
    pub(in crate::policy) fn of_length(length: u64) -> Self {
        Self(vec![Some((length, None, 0))])
    }
}

#[cfg(unix)]
fn identity(what: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(what)
}

#[cfg(not(unix))]
const fn identity(_: &Metadata) -> u64 {
    0
}
