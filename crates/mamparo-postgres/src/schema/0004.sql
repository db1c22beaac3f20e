-- A service's events, put in its own transactions, and what its consumers have processed. Times are the server's own.

CREATE TABLE events (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C",
    ready_at timestamptz NOT NULL DEFAULT '-infinity', -- a row is claimed until then
    claim bigint,
    failures bigint NOT NULL DEFAULT 0,
    parked_at timestamptz,
    parked_for text,
    created_at bigint NOT NULL, -- milliseconds since 1970, by the clock of who put it
    id text NOT NULL,
    destination text NOT NULL,
    routing_key text NOT NULL,
    head text NOT NULL,
    payload bytea NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- What is not indexed can be claimed and given back within its page.
CREATE INDEX events_key ON events (key, number) WHERE key IS NOT NULL;
CREATE INDEX events_waiting ON events (number) WHERE parked_at IS NULL;
CREATE INDEX events_keyless ON events (number) WHERE parked_at IS NULL AND key IS NULL;
CREATE INDEX events_parked ON events (number) WHERE parked_at IS NOT NULL;

CREATE TABLE inbox (
    consumer text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX inbox_at ON inbox (at);
