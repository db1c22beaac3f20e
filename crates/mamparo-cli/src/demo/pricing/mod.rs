//! A dependency that speaks gRPC: it tells what things cost, and asks for some patience first.
//!
//! [`generated`] is what `build.rs` made of `proto/prices.proto`; [`server`] is a plain server of tonic's; [`scene`] is a
//! stream of prices that ends with its deadline; [`proofs`] says what must have come of both.

mod generated;
mod proofs;
mod scene;
mod server;

pub(super) use generated::{Item, prices_client::PricesClient};
pub(super) use proofs::proofs;
pub(super) use scene::{Watched, watch};
pub(super) use server::Pricing;
