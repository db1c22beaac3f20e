//! Over real sockets: what a client's error proves, what the peer sees, and what a layer around the connector does.

mod adapters;
mod connector;
mod tonic;
