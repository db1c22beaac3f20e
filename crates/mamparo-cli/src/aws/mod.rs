//! `mamparo aws`: what the defer plane needs on AWS, told, made and checked.
//!
//! [`plan`] prints it, in words by [`text`]; [`reach`] makes and checks it.

mod plan;
mod reach;
mod text;

pub(crate) use plan::plan;
pub(crate) use reach::{apply, check};
