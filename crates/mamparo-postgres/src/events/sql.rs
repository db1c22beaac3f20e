//! What is asked of the tables, each in one statement.

use std::sync::Arc;

/// The statements, each naming its table with the schema: a service's own connection may look for tables elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub(super) put: Arc<str>,
    pub(super) claim: Arc<str>,
    pub(super) published: Arc<str>,
    pub(super) later: Arc<str>,
    pub(super) park: Arc<str>,
    pub(super) backlog: Arc<str>,
    pub(super) parked: Arc<str>,
    pub(super) unpark: Arc<str>,
    pub(super) discard: Arc<str>,
    pub(super) process: Arc<str>,
    pub(super) sweep: Arc<str>,
}

/// As many of one key as one claim takes, besides the first, are 32: they leave one after the other.
///
/// Only the first of a key is locked, and no other is taken without it: so two claims never share a key, whatever each sees of the
/// other. What is before it of its key would be published first, however late it commits.
///
/// How it is planned must not depend on what the server believes: an empty table that has been vacuumed still counts as empty when a
/// million events wait in it. So keys are compared together with numbers, for which one index only is of use, and rows are named as an
/// array.
///
/// Four times as many rows as are asked for are looked at in their order. Where most of them wait, as behind the first of a key that has
/// a million, the rest is found beyond them: those of no key, and the first of each key, key by key.
const CLAIM: &str = "\
WITH RECURSIVE horizon AS MATERIALIZED (
    SELECT number FROM {events} WHERE parked_at IS NULL ORDER BY number LIMIT 1 OFFSET 4 * $1
), near AS MATERIALIZED (
    SELECT e.number, e.key FROM {events} e
    WHERE e.ready_at <= clock_timestamp() AND e.parked_at IS NULL
        AND e.number <= coalesce((SELECT number FROM horizon), 9223372036854775807)
        AND NOT EXISTS (SELECT FROM {events} b WHERE b.key >= e.key AND (b.key, b.number) < (e.key, e.number) OFFSET 0)
    ORDER BY e.number LIMIT $1 FOR UPDATE OF e SKIP LOCKED
), room AS MATERIALIZED (
    SELECT h.number AS horizon, $1 - (SELECT count(*) FROM near) AS room FROM horizon h
), keys AS (
    (SELECT e.key, e.number, e.ready_at, e.parked_at FROM {events} e
    WHERE e.key IS NOT NULL AND (SELECT room FROM room) > 0 ORDER BY e.key, e.number LIMIT 1)
    UNION ALL
    SELECT n.* FROM keys k CROSS JOIN LATERAL (
        SELECT e.key, e.number, e.ready_at, e.parked_at FROM {events} e
        WHERE e.key > k.key ORDER BY e.key, e.number LIMIT 1
    ) n
), seen AS MATERIALIZED (
    (SELECT k.number FROM keys k
    WHERE k.ready_at <= clock_timestamp() AND k.parked_at IS NULL AND k.number > (SELECT horizon FROM room)
    LIMIT (SELECT room FROM room))
    UNION ALL
    (SELECT e.number FROM {events} e
    WHERE e.key IS NULL AND e.parked_at IS NULL AND e.ready_at <= clock_timestamp() AND e.number > (SELECT horizon FROM room)
    ORDER BY e.number LIMIT (SELECT room FROM room))
), far AS MATERIALIZED (
    SELECT e.number, e.key FROM {events} e
    WHERE e.number = ANY(ARRAY(SELECT number FROM seen)) AND e.ready_at <= clock_timestamp() AND e.parked_at IS NULL
    ORDER BY e.number LIMIT (SELECT room FROM room) FOR UPDATE OF e SKIP LOCKED
), heads AS MATERIALIZED (
    SELECT number, key FROM near UNION ALL SELECT number, key FROM far
), followers AS MATERIALIZED (
    SELECT f.number FROM heads h CROSS JOIN LATERAL (
        SELECT g.number, bool_and(g.free) OVER (ORDER BY g.number) AS free FROM (
            SELECT n.number, n.ready_at <= clock_timestamp() AND n.parked_at IS NULL AS free FROM {events} n
            WHERE n.key <= h.key AND (n.key, n.number) > (h.key, h.number) ORDER BY n.key, n.number LIMIT 32
        ) g
    ) f
    WHERE f.free ORDER BY f.number LIMIT greatest(0, $1 - (SELECT count(*) FROM heads))
), taken AS MATERIALIZED (
    SELECT number FROM heads UNION ALL SELECT number FROM followers
)
UPDATE {events} e SET claim = $2, ready_at = clock_timestamp() + $3 * interval '1 millisecond'
WHERE e.number = ANY(ARRAY(SELECT number FROM taken))
RETURNING e.number, e.failures, e.created_at, e.id, e.key, e.destination, e.routing_key, e.head, e.payload";

const PUT: &str = "\
INSERT INTO {events} (created_at, id, key, destination, routing_key, head, payload) VALUES ($1, $2, $3, $4, $5, $6, $7)";

const PUBLISHED: &str = "DELETE FROM {events} WHERE number = ANY($1) AND claim = $2";

const LATER: &str = "\
UPDATE {events} e SET claim = NULL, failures = e.failures + s.failed::int,
    ready_at = clock_timestamp() + s.wait * interval '1 millisecond'
FROM unnest($1::bigint[], $3::bigint[], $4::boolean[]) s (number, wait, failed)
WHERE e.number = ANY($1) AND e.number = s.number AND e.claim = $2";

const PARK: &str = "\
UPDATE {events} e SET claim = NULL, failures = e.failures + 1, parked_at = clock_timestamp(), parked_for = s.reason
FROM unnest($1::bigint[], $3::text[]) s (number, reason)
WHERE e.number = ANY($1) AND e.number = s.number AND e.claim = $2";

const BACKLOG: &str = "\
SELECT (SELECT count(*) FROM (SELECT FROM {events} WHERE parked_at IS NULL ORDER BY number LIMIT $1) w),
    (SELECT count(*) FROM (SELECT FROM {events} WHERE parked_at IS NOT NULL ORDER BY number LIMIT $1) p),
    (SELECT created_at FROM {events} WHERE parked_at IS NULL ORDER BY number LIMIT 1)";

const PARKED: &str = "\
SELECT number, failures, created_at, id, key, destination, routing_key, head, payload,
    coalesce(parked_for, ''), (extract(epoch FROM parked_at) * 1000)::bigint
FROM {events} WHERE parked_at IS NOT NULL AND number > $1 ORDER BY number LIMIT $2";

const UNPARK: &str = "\
UPDATE {events} SET parked_at = NULL, parked_for = NULL, failures = 0, ready_at = '-infinity'
WHERE number = ANY($1) AND parked_at IS NOT NULL";

const DISCARD: &str = "DELETE FROM {events} WHERE number = ANY($1) AND parked_at IS NOT NULL";

const PROCESS: &str = "INSERT INTO {inbox} (consumer, id) VALUES ($1, $2) ON CONFLICT DO NOTHING";

const SWEEP: &str = "\
DELETE FROM {inbox} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM {inbox} WHERE at < clock_timestamp() - $1 * interval '1 millisecond'
    ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
))";

/// By name, with as many parameters as they take: for the tests that ask how they are planned.
#[cfg(test)]
pub(crate) const STATEMENTS: [(&str, &str, usize); 10] = [
    ("claim events", CLAIM, 3),
    ("events published", PUBLISHED, 2),
    ("events later", LATER, 4),
    ("park events", PARK, 3),
    ("backlog", BACKLOG, 1),
    ("parked events", PARKED, 2),
    ("unpark events", UNPARK, 1),
    ("discard events", DISCARD, 1),
    ("process a message", PROCESS, 2),
    ("sweep the inbox", SWEEP, 2),
];

impl Statements {
    pub(super) fn of(schema: &str) -> Self {
        let named = |statement: &str| {
            let named = statement.replace("{events}", &format!("{schema}.events"));
            Arc::from(named.replace("{inbox}", &format!("{schema}.inbox")))
        };
        Self {
            put: named(PUT),
            claim: named(CLAIM),
            published: named(PUBLISHED),
            later: named(LATER),
            park: named(PARK),
            backlog: named(BACKLOG),
            parked: named(PARKED),
            unpark: named(UNPARK),
            discard: named(DISCARD),
            process: named(PROCESS),
            sweep: named(SWEEP),
        }
    }
}
