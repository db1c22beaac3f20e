//! What a gRPC call needs that knows no generated code: descriptors, messages written as JSON, and a channel.
//!
//! Descriptors come from the server, by [`reflect`], or from files, by [`compile`]; a [`Schema`] finds a method among
//! them. Messages are [`json`] outside and protobuf inside, through one [`DynamicCodec`].

mod address;
mod channel;
mod codec;
mod files;
mod json;
mod names;
mod reflect;
mod schema;

pub(crate) use address::Address;
pub(crate) use channel::channel;
pub(crate) use codec::DynamicCodec;
pub(crate) use files::compile;
pub(crate) use json::{from_json, to_json};
pub(crate) use reflect::{Unreflected, reflect};
pub(crate) use schema::Schema;
