//! The formats of a document.

use std::path::Path;

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// TOML 1.1.
    Toml,
    /// YAML 1.2, without anchors, aliases and tags.
    Yaml,
    /// JSON (RFC 8259).
    Json,
}

impl Format {
    /// Returns the format that a file's ending says.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}
