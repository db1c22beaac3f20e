//! A request as bytes.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use mamparo_core::InvalidSetting;
use serde::{Deserialize, Serialize};

/// What is not stored: secrets, what belongs to a connection, what each send has anew.
pub(crate) const NOT_STORED: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "te",
    "upgrade",
    "expect",
    "content-length",
    "host",
    "idempotency-key",
    "grpc-timeout",
    "x-request-timeout-ms",
    "traceparent",
    "tracestate",
];

/// A request that can be stored and sent again.
///
/// It is written as one line of JSON with method, address and headers, and after it the body as it is. Not stored are secrets
/// (`authorization`, `cookie`), which the client's stack adds when it sends, and headers that each send has anew (a deadline, a trace
/// context, an idempotency key) or that belong to one connection. The [key](Self::with_key) under which the original went out is stored
/// apart from them.
///
/// ```
/// use mamparo_durable::web::StoredRequest;
///
/// let request = http::Request::post("http://psp/charges").header("authorization", "secret").body("5 EUR".into())?;
/// let bytes = StoredRequest::new(&request).encode();
/// let again = StoredRequest::decode(&bytes)?.into_request();
/// assert_eq!((again.uri().path(), &again.body()[..]), ("/charges", &b"5 EUR"[..]));
/// assert!(again.headers().is_empty());
/// # Ok::<(), mamparo_core::BoxError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StoredRequest {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    key: Option<HeaderValue>,
    body: Bytes,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    method: String,
    uri: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// The key of attempt 1, if it is not the engine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl StoredRequest {
    /// Takes what is stored of a request.
    #[must_use]
    pub fn new(request: &Request<Bytes>) -> Self {
        Self::of(
            request.method(),
            request.uri(),
            request.headers(),
            request.body().clone(),
        )
    }

    pub(crate) fn of(method: &Method, uri: &Uri, headers: &HeaderMap, body: Bytes) -> Self {
        let stored = headers
            .iter()
            .filter(|(name, value)| !NOT_STORED.contains(&name.as_str()) && !value.is_sensitive());
        Self {
            method: method.clone(),
            uri: uri.clone(),
            headers: stored
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            key: None,
            body,
        }
    }

    /// Keeps the idempotency key under which attempt 1 went out, as it was written: what is sent again of that attempt has the same.
    #[must_use]
    pub fn with_key(mut self, key: Option<HeaderValue>) -> Self {
        self.key = key;
        self
    }

    /// Writes it.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str().to_owned(), latin(value)));
        let head = Head {
            method: self.method.to_string(),
            uri: self.uri.to_string(),
            headers: headers.collect(),
            key: self.key.as_ref().map(latin),
        };
        // Texts and lists of texts can always be written.
        let line = serde_json::to_vec(&head).unwrap_or_default();
        let mut bytes = BytesMut::with_capacity(line.len() + 1 + self.body.len());
        bytes.put_slice(&line);
        bytes.put_u8(b'\n');
        bytes.put_slice(&self.body);
        bytes.freeze()
    }

    /// Reads it.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when it is none, as of another program.
    pub fn decode(bytes: &Bytes) -> Result<Self, InvalidSetting> {
        let refuse = |why: String| {
            let reason =
                "must be a line of JSON with method, uri and headers, and the body after it";
            InvalidSetting::new("request", why, reason)
        };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| refuse("no line".to_owned()))?;
        let head: Head =
            serde_json::from_slice(&bytes[..end]).map_err(|error| refuse(error.to_string()))?;
        let method = head.method.parse().map_err(|_| refuse(head.method))?;
        let uri = head.uri.parse().map_err(|_| refuse(head.uri))?;
        let mut headers = HeaderMap::new();
        for (name, value) in head.headers {
            let named = HeaderName::try_from(&name).map_err(|_| refuse(name.clone()))?;
            headers.append(named, unlatin(&value).ok_or_else(|| refuse(name))?);
        }
        let key = head.key.map(|key| unlatin(&key).ok_or_else(|| refuse(key)));
        Ok(Self {
            method,
            uri,
            headers,
            key: key.transpose()?,
            body: bytes.slice(end + 1..),
        })
    }

    /// Tells whether method, address and body are the same.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        self.method == other.method && self.uri == other.uri && self.body == other.body
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the address.
    #[must_use]
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the idempotency key under which attempt 1 went out, if it was not the engine's.
    #[must_use]
    pub const fn key(&self) -> Option<&HeaderValue> {
        self.key.as_ref()
    }

    /// Makes the request anew, without its key.
    #[must_use]
    pub fn into_request(self) -> Request<Bytes> {
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.headers_mut() = self.headers;
        request
    }
}

/// Each byte of a value is a character of Latin-1, and so is read back as it was.
fn latin(value: &HeaderValue) -> String {
    value
        .as_bytes()
        .iter()
        .map(|byte| char::from(*byte))
        .collect()
}

fn unlatin(text: &str) -> Option<HeaderValue> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    HeaderValue::from_bytes(&bytes?).ok()
}
