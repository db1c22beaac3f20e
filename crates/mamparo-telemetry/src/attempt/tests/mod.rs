//! What is recorded of a physical send, by its protocol.

mod http;
mod rpc;
