//! The whole stack over a scripted transport.

mod cast;
mod grpc;
mod operations;
mod order;
mod switches;
mod trouble;
