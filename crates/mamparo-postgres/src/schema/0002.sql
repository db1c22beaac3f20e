-- Idempotency keys of servers. Times are the server's own, so that one clock counts for all.

CREATE TABLE idempotency_keys (
    id bytea PRIMARY KEY,
    fence bytea NOT NULL, -- who started it last
    fingerprint bytea NOT NULL,
    runs bigint NOT NULL DEFAULT 1, -- more than one: a lease was over, and it was run again
    lease_until timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    answer bytea -- empty until it is completed
) WITH (autovacuum_vacuum_scale_factor = 0.05);

ALTER TABLE idempotency_keys ALTER COLUMN answer SET STORAGE EXTERNAL;

CREATE INDEX idempotency_keys_expires_at ON idempotency_keys (expires_at);
