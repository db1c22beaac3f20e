//! Every statement that writes: arrays in, one row each.

/// Begins transactions; returns the ids of those that were not there.
pub(crate) const BEGIN: &str = "\
INSERT INTO transactions (transaction_id, state, attempt_current, attempt_next, schedule_seq, postponements,
    next_fire_at, updated_at, reason, ended, kind, customer, dependency, trace, max_attempts, max_postponements,
    give_up_at, created_at, request)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
    $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[],
    $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bytea[])
ON CONFLICT (transaction_id) DO NOTHING
RETURNING transaction_id";

/// Writes progress where what is stored is as expected; returns the places in the arrays of those that were.
pub(crate) const TRANSIT: &str = "\
UPDATE transactions t SET
    state = w.state, attempt_current = w.attempt_current, attempt_next = w.attempt_next, schedule_seq = w.schedule_seq,
    postponements = w.postponements, next_fire_at = w.next_fire_at, updated_at = w.updated_at, reason = w.reason,
    ended = w.ended
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[])
    WITH ORDINALITY AS w (transaction_id, state, attempt_current, attempt_next, schedule_seq, postponements,
        next_fire_at, updated_at, reason, ended, from_state, from_current, from_next, from_seq, place)
WHERE t.transaction_id = w.transaction_id AND t.state = w.from_state AND t.attempt_current = w.from_current
    AND t.attempt_next IS NOT DISTINCT FROM w.from_next AND t.schedule_seq = w.from_seq
RETURNING w.place";

/// Returns which ids are stored.
pub(crate) const STORED: &str = "\
SELECT t.transaction_id FROM unnest($1::text[]) AS w (transaction_id)
JOIN transactions t ON t.transaction_id = w.transaction_id";

pub(crate) const HISTORY: &str = "\
INSERT INTO history (transaction_id, at, from_state, to_state, attempt, seq, fire_at, cause, reason)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::text[], $9::text[])";

pub(crate) const TALLY: &str = "\
INSERT INTO tally (state, attempt, change) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[])";

/// Makes one row of many; one at a time, whoever else wants to leaves it.
pub(crate) const SUM_UP: &str = "\
WITH old AS (DELETE FROM tally WHERE pg_try_advisory_xact_lock(hashtext(current_schema()), 1) RETURNING *)
INSERT INTO tally (state, attempt, change)
SELECT state, attempt, sum(change) FROM old GROUP BY state, attempt HAVING sum(change) <> 0";

/// Makes schedules that are not there.
pub(crate) const SCHEDULE: &str = "\
INSERT INTO messages (queue, transaction_id, attempt, seq, since, ready_at, scheduled)
SELECT 'fires', w.transaction_id, w.attempt, w.seq, w.fire_at, w.fire_at, true
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS w (transaction_id, attempt, seq, fire_at)
ON CONFLICT (transaction_id, attempt, seq) WHERE scheduled DO NOTHING";

/// For schedules that were to be made: the place, whether this transaction made it, whether its instant is the same.
pub(crate) const SCHEDULED: &str = "\
SELECT w.place, m.xmin = pg_current_xact_id()::xid, m.since = w.fire_at
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
    WITH ORDINALITY AS w (transaction_id, attempt, seq, fire_at, place)
JOIN messages m ON m.transaction_id = w.transaction_id AND m.attempt = w.attempt AND m.seq = w.seq AND m.scheduled";

pub(crate) const UNSCHEDULE: &str = "\
DELETE FROM messages m USING unnest($1::text[], $2::bigint[], $3::bigint[]) AS w (transaction_id, attempt, seq)
WHERE m.transaction_id = w.transaction_id AND m.attempt = w.attempt AND m.seq = w.seq AND m.scheduled";

pub(crate) const PUBLISH: &str = "\
INSERT INTO messages (queue, transaction_id, attempt, seq, outcome, reason, not_before, since, ready_at)
SELECT w.*, $8::bigint, $8::bigint
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::bigint[]) AS w";

pub(crate) const ACKNOWLEDGE: &str = "\
DELETE FROM messages m USING unnest($1::bigint[], $2::bigint[]) AS w (number, lease)
WHERE m.number = w.number AND m.lease = w.lease";

pub(crate) const RELEASE: &str = "\
UPDATE messages m SET ready_at = w.ready_at, lease = 0, deliveries = m.deliveries - w.unspent
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS w (number, lease, ready_at, unspent)
WHERE m.number = w.number AND m.lease = w.lease";

/// Holds leases longer that are not over.
///
/// What another is writing is being settled, so it is left: to wait for it, while it may wait for what is locked here, would be a deadlock.
pub(crate) const EXTEND: &str = "\
WITH held AS MATERIALIZED (
    SELECT m.number, w.until FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS w (number, lease, until)
    JOIN messages m ON m.number = w.number AND m.lease = w.lease AND m.ready_at > $4
    FOR UPDATE OF m SKIP LOCKED
)
UPDATE messages m SET ready_at = held.until FROM held WHERE m.number = held.number";

pub(crate) const BURY: &str = "\
WITH gone AS (
    DELETE FROM messages m USING unnest($1::bigint[], $2::bigint[], $3::text[], $5::bigint[]) AS w (number, lease, why, unspent)
    WHERE m.number = w.number AND m.lease = w.lease
    RETURNING m.queue, m.transaction_id, m.attempt, m.seq, m.outcome, m.reason, m.not_before,
        m.deliveries - w.unspent, w.why
)
INSERT INTO dead_letters (queue, transaction_id, attempt, seq, outcome, reason, not_before, deliveries, why, buried_at)
SELECT gone.*, $4::bigint FROM gone";

/// By name, with as many parameters as they take: for the tests that ask how they are planned.
#[cfg(test)]
pub(crate) const STATEMENTS: [(&str, &str, usize); 14] = [
    ("begin", BEGIN, 19),
    ("transit", TRANSIT, 14),
    ("stored", STORED, 1),
    ("history", HISTORY, 9),
    ("tally", TALLY, 3),
    ("sum up", SUM_UP, 0),
    ("schedule", SCHEDULE, 4),
    ("scheduled", SCHEDULED, 4),
    ("unschedule", UNSCHEDULE, 3),
    ("publish", PUBLISH, 8),
    ("acknowledge", ACKNOWLEDGE, 2),
    ("release", RELEASE, 4),
    ("extend", EXTEND, 4),
    ("bury", BURY, 5),
];
