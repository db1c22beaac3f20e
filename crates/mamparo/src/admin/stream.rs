//! The events, as one reader gets them.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use mamparo_core::clock::{self, Instant};
use serde_json::json;
use tokio::select;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast, watch};
use tokio::time::{sleep_until, timeout};

use super::config::Streams;
use super::feed::event;

/// How soon whoever lost its stream asks again, in milliseconds.
const RETRY: &[u8] = b"retry: 3000\n\n";

/// A comment: readers pass over it.
const STILL_HERE: Bytes = Bytes::from_static(b": still here\n\n");

/// One reader's stream; its place is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Stream {
    first: Option<Bytes>,
    events: broadcast::Receiver<Bytes>,
    snapshots: watch::Receiver<Bytes>,
    keep_alive: Duration,
    until: Instant,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    pub(super) fn new(
        settings: Streams,
        snapshot: Bytes,
        events: broadcast::Receiver<Bytes>,
        snapshots: watch::Receiver<Bytes>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            first: Some([Bytes::from_static(RETRY), snapshot].concat().into()),
            events,
            snapshots,
            keep_alive: settings.keep_alive,
            until: clock::later(clock::now(), settings.longest),
            _place: place,
        }
    }

    pub(super) fn into_body(self) -> Body {
        Body::from_stream(unfold(self, async |mut stream| {
            let bytes = stream.next().await?;
            Some((Ok::<_, Infallible>(bytes), stream))
        }))
    }

    /// Waits for what is to be read next; nothing when the stream has lasted long enough.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let next = async {
            select! {
                biased;
                () = sleep_until(self.until) => None,
                event = self.events.recv() => match event {
                    Ok(event) => Some(event),
                    Err(RecvError::Lagged(lost)) => {
                        Some(event_lost(lost))
                    }
                    Err(RecvError::Closed) => None,
                },
                Ok(()) = self.snapshots.changed() => {
                    Some(self.snapshots.borrow_and_update().clone())
                }
            }
        };
        timeout(self.keep_alive, next)
            .await
            .unwrap_or(Some(STILL_HERE))
    }
}

fn event_lost(events: u64) -> Bytes {
    event("lost", &json!({ "events": events }).to_string())
}
