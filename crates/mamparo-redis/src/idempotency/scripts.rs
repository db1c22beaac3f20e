//! The scripts as they are sent.

use redis::Script;

/// Each with its hash, by which the server knows it.
pub(super) struct Scripts {
    pub(super) begin: Script,
    pub(super) find: Script,
    pub(super) renew: Script,
    pub(super) complete: Script,
    pub(super) release: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            begin: Script::new(include_str!("scripts/begin.lua")),
            find: Script::new(include_str!("scripts/find.lua")),
            renew: Script::new(include_str!("scripts/renew.lua")),
            complete: Script::new(include_str!("scripts/complete.lua")),
            release: Script::new(include_str!("scripts/release.lua")),
        }
    }
}
