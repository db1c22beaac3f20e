//! What a server keeps of the requests that it got.

use super::wire::Link;
use crate::sync::lock;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri, Version};
use http_body::Frame;
use mamparo_core::clock::{self, Instant};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The method.
    pub method: Method,
    /// The target, as it was sent.
    pub uri: Uri,
    /// HTTP/1.1 or HTTP/2.
    pub version: Version,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body, as far as it has arrived.
    pub body: Bytes,
    /// The trailers, once they have arrived.
    pub trailers: Option<HeaderMap>,
    /// When the head arrived.
    pub at: Instant,
    /// When the handler ended, or was dropped because the client went away.
    pub stopped_at: Option<Instant>,
}

impl Seen {
    /// Returns the first value of a header field, if it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The notes of one server.
#[derive(Debug, Default)]
pub(super) struct Log(Mutex<Notes>);

#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) requests: Vec<Seen>,
    pub(super) effects: BTreeMap<String, usize>,
    pub(super) connections: usize,
}

impl Notes {
    pub(super) fn running(&self) -> usize {
        let open = self
            .requests
            .iter()
            .filter(|seen| seen.stopped_at.is_none());
        open.count()
    }

    pub(super) fn last_stop(&self) -> Option<Instant> {
        self.requests
            .iter()
            .filter_map(|seen| seen.stopped_at)
            .max()
    }
}

impl Log {
    pub(super) fn read<T>(&self, read: impl FnOnce(&Notes) -> T) -> T {
        read(&lock(&self.0))
    }

    pub(super) fn connected(&self) {
        lock(&self.0).connections += 1;
    }

    /// Notes the head of a request; the exchange notes the rest.
    pub(super) fn open<B>(log: &Arc<Self>, request: &Request<B>, link: Link) -> Exchange {
        let mut notes = lock(&log.0);
        notes.requests.push(Seen {
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            headers: request.headers().clone(),
            body: Bytes::new(),
            trailers: None,
            at: clock::now(),
            stopped_at: None,
        });
        Exchange {
            log: Arc::clone(log),
            index: notes.requests.len() - 1,
            link,
        }
    }
}

/// One request that is being handled; it lives until the handler is over.
#[derive(Debug)]
pub(super) struct Exchange {
    log: Arc<Log>,
    index: usize,
    pub(super) link: Link,
}

impl Exchange {
    fn note<T>(&self, note: impl FnOnce(&mut Seen) -> T) -> T {
        note(&mut lock(&self.log.0).requests[self.index])
    }

    pub(super) fn arrived(&self, frame: Frame<Bytes>) {
        self.note(|seen| match frame.into_data() {
            Ok(data) => seen.body = [seen.body.as_ref(), &data].concat().into(),
            Err(other) => seen.trailers = other.into_trailers().ok(),
        });
    }

    /// Counts an effect. A key that was committed before has its effect already.
    pub(super) fn commit(&self, key_header: &str) {
        let key = self.note(|seen| seen.header(key_header).unwrap_or_default().to_owned());
        let mut notes = lock(&self.log.0);
        let known = !key.is_empty() && notes.effects.contains_key(&key);
        if !known {
            *notes.effects.entry(key).or_default() += 1;
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.note(|seen| seen.stopped_at = Some(clock::now()));
    }
}
