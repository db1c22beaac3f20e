//! Messages on the wire, described at run time.

use prost_reflect::prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// A codec of messages of any type; it knows the type of those that come in.
#[derive(Clone, Debug)]
pub(crate) struct DynamicCodec {
    comes_in: MessageDescriptor,
}

impl DynamicCodec {
    /// Takes the type of what comes in: a client's output, a server's input.
    pub(crate) const fn new(comes_in: MessageDescriptor) -> Self {
        Self { comes_in }
    }
}

impl Codec for DynamicCodec {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        self.clone()
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Encoder for DynamicCodec {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, item: DynamicMessage, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let room = item.encode(into);
        room.map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for DynamicCodec {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let name = self.comes_in.full_name();
        DynamicMessage::decode(self.comes_in.clone(), from)
            .map(Some)
            .map_err(|error| Status::internal(format!("what came is no {name}: {error}")))
    }
}
