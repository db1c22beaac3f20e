//! Requests with keys, through the layer.

mod bounds;
mod callers;
mod cast;
mod grpc;
mod keys;
mod life;
mod stores;
mod transactions;
