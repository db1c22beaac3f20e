//! What is in the file.
//!
//! Everything that is looked for again and again has an index that holds only what is not at its end, so that no cost grows
//! with history. Instants are milliseconds since 1970; states, causes and queues are stored by their names.

use crate::database::Part;

/// The step numbers are those of the file: one that was released is never changed.
pub(super) const PART: Part = Part {
    name: "mamparo_durable",
    steps: &[FIRST, SECOND],
};

/// `watched_from` is when the present state begins to be watched: `next_fire_at` while SCHEDULED, or up to 15 s earlier, so that what is
/// due together lies together; else `updated_at`. Older versions wrote the exact instant.
///
/// The indexes of what lives have `ended` in them, though it is always NULL there: only so SQLite need not look into the row for it.
///
/// A request is never rewritten, so it has a table of its own. The history lies in the order of its transactions, so that one
/// page has all of one's. A schedule is a message that is not ready yet: that its instant comes changes nothing in the file.
const FIRST: &str = "
CREATE TABLE mamparo_durable (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt_current INTEGER NOT NULL,
    attempt_next INTEGER,
    schedule_seq INTEGER NOT NULL,
    postponements INTEGER NOT NULL,
    next_fire_at INTEGER,
    reason TEXT,
    ended TEXT,
    updated_at INTEGER NOT NULL,
    watched_from INTEGER NOT NULL,
    kind TEXT NOT NULL,
    customer TEXT,
    dependency TEXT,
    trace TEXT,
    max_attempts INTEGER NOT NULL,
    max_postponements INTEGER NOT NULL,
    give_up_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX mamparo_durable_id ON mamparo_durable (id);
CREATE INDEX mamparo_durable_live ON mamparo_durable (state, watched_from, attempt_current, dependency, ended)
    WHERE ended IS NULL;
CREATE INDEX mamparo_durable_born ON mamparo_durable (created_at, ended) WHERE ended IS NULL;
CREATE INDEX mamparo_durable_over ON mamparo_durable (updated_at) WHERE ended IS NOT NULL;

CREATE TABLE mamparo_durable_request (
    number INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE mamparo_durable_event (
    of INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    fire_at INTEGER,
    cause TEXT NOT NULL,
    reason TEXT,
    PRIMARY KEY (of, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE mamparo_durable_ended (
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    transactions INTEGER NOT NULL,
    PRIMARY KEY (state, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE mamparo_durable_message (
    number INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    ready_at INTEGER NOT NULL,
    since INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    scheduled INTEGER NOT NULL,
    id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    outcome TEXT,
    reason TEXT,
    not_before INTEGER
) STRICT;
CREATE INDEX mamparo_durable_ready ON mamparo_durable_message (queue, ready_at, lease);
CREATE UNIQUE INDEX mamparo_durable_schedule ON mamparo_durable_message (id, attempt, seq) WHERE scheduled = 1;

CREATE TABLE mamparo_durable_dead (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    since INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    outcome TEXT,
    reason TEXT,
    not_before INTEGER,
    why TEXT NOT NULL,
    buried_at INTEGER NOT NULL,
    discarded_at INTEGER,
    discarded_for TEXT
) STRICT;
CREATE INDEX mamparo_durable_dead_letter ON mamparo_durable_dead (queue, number) WHERE discarded_at IS NULL;
";

/// Of each limit, when its whole burst is there again, in nanoseconds since 1970.
const SECOND: &str = "
CREATE TABLE mamparo_durable_limit (
    key BLOB PRIMARY KEY,
    full_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";
