//! What was meant by a call of gRPC: the typed words, checked against each other.

use std::path::PathBuf;

use http::{HeaderMap, HeaderName};
use mamparo::stack::Stack;
use mamparo_core::grpc::Grpc;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;

use super::plan::{Plan, asking};
use crate::args::{CallArgs, Limit};
use crate::call::about::{About, Form, Refused};
use crate::call::stack::{Bare, bounded, stack};
use crate::call::target;
use crate::grpc::{Address, channel};

/// What the protocol itself writes, and no caller.
const RESERVED: [&str; 2] = ["content-type", "te"];

/// A call that can be made, as far as that can be told without its descriptors.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) about: About,
    pub(super) address: Address,
    pub(super) metadata: MetadataMap,
    pub(super) channel: Channel,
    pub(super) stack: Bare<Grpc>,
    pub(super) plan: Plan,
    /// What stands around the questions that come before the call, which are not shown.
    pub(super) asking: Bare<Grpc>,
    /// The file that describes it, and the folders of its imports; without one the server is asked.
    pub(super) proto: Option<(PathBuf, Vec<PathBuf>)>,
}

impl Settings {
    pub(super) fn new(args: &CallArgs) -> Result<Self, Refused> {
        let url = target::url(&args.url)?;
        let address =
            Address::of(&url).map_err(|why| Refused(format!("`{url}` can't be called: {why}")))?;
        let name = target::name(args, &address.origin)?;
        let stack = stack(args, Stack::grpc(name))?;
        let limit = match args.connect_timeout {
            Limit::Within(limit) => Some(limit),
            Limit::None => None,
        };
        let channel = channel(&address.origin, stack.connect(), limit)
            .map_err(|error| Refused(format!("`{url}` can't be called: {error}")))?;
        Ok(Self {
            about: About {
                dependency: stack.dependency(),
                method: address.name(),
                url: url.to_string(),
                safe: false,
                output: Form::of(args),
            },
            channel,
            asking: asking(bounded(args, Stack::grpc(name))?)?,
            plan: Plan::new(args)?,
            stack,
            metadata: MetadataMap::from_headers(metadata(args)?),
            address,
            proto: args
                .proto
                .clone()
                .map(|file| (file, args.proto_path.clone())),
        })
    }
}

fn metadata(args: &CallArgs) -> Result<HeaderMap, Refused> {
    let headers = target::headers(args);
    let reserved = |name: &&HeaderName| {
        name.as_str().starts_with("grpc-") || RESERVED.contains(&name.as_str())
    };
    match headers.keys().find(reserved) {
        Some(name) if name == "grpc-timeout" => Err(Refused(
            "`grpc-timeout` is written by the layers: set --deadline".to_owned(),
        )),
        Some(name) => Err(Refused(format!(
            "`{name}` is written by the protocol, and is no metadata: leave it out"
        ))),
        None => Ok(headers),
    }
}
