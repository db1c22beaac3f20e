//! Against a local server, started for them.
