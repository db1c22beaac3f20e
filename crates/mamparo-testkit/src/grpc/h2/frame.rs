//! Frames of HTTP/2, as far as a scripted server needs them (RFC 9113, section 4.1).

use bytes::{BufMut, Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What a client says first (RFC 9113, section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;

pub(super) const ACK: u8 = 1;
pub(super) const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The longest payload that either side may send unless told otherwise.
const MAX_PAYLOAD: usize = 16_384;

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Bytes,
}

impl Frame {
    pub(super) fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Bytes>) -> Self {
        let payload = payload.into();
        Self {
            kind,
            flags,
            stream,
            payload,
        }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Why a stream was reset.
    pub(super) fn reason(&self) -> h2::Reason {
        let code = self.payload.first_chunk().copied().unwrap_or_default();
        u32::from_be_bytes(code).into()
    }

    /// Fields without compression (RFC 7541, section 6.2.2), and no CONTINUATION: they are short.
    pub(super) fn headers(stream: u32, fields: &[(String, String)], last: bool) -> Self {
        let mut block = BytesMut::new();
        for (name, value) in fields {
            block.put_u8(0);
            put_text(&mut block, name);
            put_text(&mut block, value);
        }
        Self::new(HEADERS, END_HEADERS | end_of_stream(last), stream, block)
    }

    pub(super) fn data(stream: u32, data: Bytes, last: bool) -> Self {
        Self::new(DATA, end_of_stream(last), stream, data)
    }

    pub(super) fn reset(stream: u32, reason: h2::Reason) -> Self {
        Self::new(RST_STREAM, 0, stream, number(reason.into()))
    }

    pub(super) fn go_away(last_stream: u32, reason: h2::Reason) -> Self {
        let payload = [number(last_stream), number(reason.into())].concat();
        Self::new(GOAWAY, 0, 0, payload)
    }

    pub(super) fn window(stream: u32, bytes: u32) -> Self {
        Self::new(WINDOW_UPDATE, 0, stream, number(bytes))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).expect("a short frame");
        let mut encoded = length.to_be_bytes()[1..].to_vec();
        encoded.extend([self.kind, self.flags]);
        encoded.extend(self.stream.to_be_bytes());
        encoded.extend(&self.payload);
        encoded
    }

    /// Reads a frame; an end of the connection is an error like any other.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut head = [0; 9];
        from.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if length > MAX_PAYLOAD {
            return Err(io::Error::other("a frame longer than was agreed upon"));
        }
        let mut payload = vec![0; length];
        from.read_exact(&mut payload).await?;
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        Ok(Self::new(kind, flags, stream, payload))
    }
}

fn end_of_stream(last: bool) -> u8 {
    if last { END_STREAM } else { 0 }
}

fn number(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// A string of fewer than 127 bytes, without Huffman coding (RFC 7541, section 5.2); a longer one takes one more byte.
fn put_text(block: &mut BytesMut, text: &str) {
    let length = text.len();
    assert!(length < 127 + 128, "a short field");
    match u8::try_from(length) {
        Ok(short @ ..127) => block.put_u8(short),
        _ => block.put_slice(&[127, u8::try_from(length - 127).expect("checked above")]),
    }
    block.put_slice(text.as_bytes());
}
