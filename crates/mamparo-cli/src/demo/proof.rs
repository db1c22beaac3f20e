//! A claim of the demonstration, checked.

use serde::Serialize;

/// One claim, and whether it held.
#[derive(Debug, Serialize)]
pub(super) struct Proof {
    pub(super) name: &'static str,
    pub(super) holds: bool,
    pub(super) says: String,
}

impl Proof {
    pub(super) fn line(&self) -> String {
        format!("{}: {}", self.name, self.says)
    }
}
