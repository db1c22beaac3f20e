//! What is recorded of an operation of any protocol, and of an RPC.

mod any;
mod rpc;
