-- Instants are milliseconds since 1970, UTC. Names are compared byte by byte, whatever the database's language is.

CREATE TABLE transactions (
    transaction_id text COLLATE "C" PRIMARY KEY,
    -- What every transition writes.
    state text COLLATE "C" NOT NULL,
    attempt_current bigint NOT NULL,
    attempt_next bigint,
    schedule_seq bigint NOT NULL,
    postponements bigint NOT NULL,
    next_fire_at bigint,
    updated_at bigint NOT NULL,
    reason text,
    ended text, -- why it is at its end; empty until then
    -- What never changes.
    kind text COLLATE "C" NOT NULL,
    customer text,
    dependency text COLLATE "C",
    trace text,
    max_attempts bigint NOT NULL,
    max_postponements bigint NOT NULL,
    give_up_at bigint NOT NULL,
    created_at bigint NOT NULL,
    request bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- None of them holds what is at its end: what was done long ago costs nothing.
CREATE INDEX transactions_since ON transactions (state, updated_at) WHERE ended IS NULL AND state <> 'SCHEDULED';
CREATE INDEX transactions_due ON transactions (next_fire_at) WHERE ended IS NULL AND state = 'SCHEDULED';
CREATE INDEX transactions_dependency ON transactions (dependency, next_fire_at)
    WHERE ended IS NULL AND state = 'SCHEDULED' AND dependency IS NOT NULL;
CREATE INDEX transactions_oldest ON transactions (created_at) WHERE ended IS NULL;

-- A row for each transition, written with it, never changed.
CREATE TABLE history (
    transaction_id text COLLATE "C" NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    at bigint NOT NULL,
    from_state text,
    to_state text NOT NULL,
    attempt bigint NOT NULL,
    seq bigint NOT NULL,
    fire_at bigint,
    cause text NOT NULL,
    reason text,
    PRIMARY KEY (transaction_id, number)
);

-- How many transactions there are of a state and attempt is the sum of the changes: counting costs what changed lately.
CREATE TABLE tally (
    state text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    change bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The three queues. A schedule is a fire that is not ready yet; its name is its transaction, attempt and seq.
CREATE TABLE messages (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    transaction_id text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    seq bigint NOT NULL,
    outcome text, -- of an answer
    reason text,
    not_before bigint,
    since bigint NOT NULL,
    ready_at bigint NOT NULL, -- until then it waits, or is under a lease
    lease bigint NOT NULL DEFAULT 0, -- 0 when nobody has it
    deliveries bigint NOT NULL DEFAULT 0,
    scheduled boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX messages_ready ON messages (queue, ready_at) INCLUDE (lease);
CREATE UNIQUE INDEX messages_schedule ON messages (transaction_id, attempt, seq) WHERE scheduled;

CREATE TABLE dead_letters (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    transaction_id text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    seq bigint NOT NULL,
    outcome text,
    reason text,
    not_before bigint,
    deliveries bigint NOT NULL,
    why text NOT NULL,
    buried_at bigint NOT NULL
);

CREATE INDEX dead_letters_queue ON dead_letters (queue, number);

-- Who removed a dead letter for good, and why.
CREATE TABLE discarded (
    number bigint PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    transaction_id text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    seq bigint NOT NULL,
    outcome text,
    reason text,
    why_buried text NOT NULL,
    why text NOT NULL,
    discarded_by text NOT NULL DEFAULT session_user,
    discarded_at bigint NOT NULL
);
