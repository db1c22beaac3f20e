//! What is in the file.

use crate::database::Part;

/// The step numbers are those of the file: one that was released is never changed.
pub(super) const PART: Part = Part {
    name: "mamparo_events",
    steps: &[FIRST],
};

/// Instants are milliseconds since 1970. A row is claimed until `ready_at`; a published one is removed.
const FIRST: &str = "
CREATE TABLE mamparo_events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    ready_at INTEGER NOT NULL,
    claim INTEGER,
    failures INTEGER NOT NULL,
    parked_at INTEGER,
    parked_for TEXT,
    created_at INTEGER NOT NULL,
    id TEXT NOT NULL,
    key TEXT,
    destination TEXT NOT NULL,
    routing_key TEXT NOT NULL,
    head TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;
CREATE INDEX mamparo_events_key ON mamparo_events (key) WHERE key IS NOT NULL;
CREATE INDEX mamparo_events_waiting ON mamparo_events (number) WHERE parked_at IS NULL;
CREATE INDEX mamparo_events_keyless ON mamparo_events (number) WHERE parked_at IS NULL AND key IS NULL;
CREATE INDEX mamparo_events_parked ON mamparo_events (number) WHERE parked_at IS NOT NULL;

CREATE TABLE mamparo_inbox (
    consumer TEXT NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (consumer, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX mamparo_inbox_at ON mamparo_inbox (at);
";
