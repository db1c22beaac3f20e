-- The rates that engines share. Times are the server's own, in nanoseconds since 1970, so that one clock counts for all.

CREATE TABLE limits (
    key bytea PRIMARY KEY,
    full_at bigint NOT NULL -- when the whole burst is there again
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
