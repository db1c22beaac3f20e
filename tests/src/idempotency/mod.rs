//! Payments that are made once: servers in processes of their own, with real stores, that are killed and asked again.
//!
//! - `shop` makes payments, and looks which were made
//! - `process` is the server, in a process of its own
//! - `crash` kills it at random instants, under callers that give up, repeat and come together
//! - `lost` loses the answer after the commit
//! - `crowd` asks two servers with one key at once
//! - `curl` and `httpx` are other implementations' clients

mod crash;
mod crowd;
mod curl;
mod httpx;
mod lost;
mod process;
mod shop;
