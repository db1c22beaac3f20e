//! The text of a status as it stands in a header: percent-encoded UTF-8 (gRPC over HTTP/2, "Responses").

use std::fmt::Write;

use http::HeaderValue;

/// The longest text that is written, in bytes before it is encoded: a peer bounds the size of its headers.
pub const MAX_LENGTH: usize = 1024;

/// Writes a text for the `grpc-message` header; what is longer than [`MAX_LENGTH`] is cut.
///
/// ```
/// use mamparo_core::grpc::message;
///
/// let value = message::encode("100 % 你");
/// assert_eq!(value, "100 %25 %E4%BD%A0");
/// assert_eq!(message::decode(&value), "100 % 你");
/// ```
#[must_use]
pub fn encode(text: &str) -> HeaderValue {
    let end = text.floor_char_boundary(MAX_LENGTH);
    let mut encoded = String::with_capacity(end);
    for byte in text.bytes().take(end) {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _infallible = write!(encoded, "%{byte:02X}");
        }
    }
    // All of it is visible ASCII.
    HeaderValue::try_from(encoded).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Reads a text from a `grpc-message`: what is not well encoded is kept as it stands, what is not UTF-8 replaced.
#[must_use]
pub fn decode(value: &HeaderValue) -> String {
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        let byte = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)),
            _ => None,
        };
        if let Some((high, low)) = byte {
            decoded.push(high << 4 | low);
            rest = rest.get(3..).unwrap_or_default();
        } else {
            decoded.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| digit.try_into().ok())
}
