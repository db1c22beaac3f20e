//! What an answer says of its key.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// `true` on an answer that was given before.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// How many seconds an answer is kept, from the moment it was stored.
pub const IDEMPOTENCY_RETENTION: HeaderName = HeaderName::from_static("idempotency-retention");

/// On an answer that will not be given again: `no`, or `without-answer` where the request is not run again either.
pub const IDEMPOTENCY_RECORDED: HeaderName = HeaderName::from_static("idempotency-recorded");

/// What an answer says of its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    replayed: bool,
    recorded: Option<&'static str>,
    retention: Option<Duration>,
}

impl Mark {
    pub(super) const NOT_STORED: Self = Self {
        replayed: false,
        recorded: Some("no"),
        retention: None,
    };

    pub(super) const fn stored(retention: Duration) -> Self {
        Self {
            replayed: false,
            recorded: None,
            retention: Some(retention),
        }
    }

    pub(super) const fn without_answer(retention: Duration) -> Self {
        Self {
            recorded: Some("without-answer"),
            ..Self::stored(retention)
        }
    }

    pub(super) const fn replayed(retention: Duration) -> Self {
        Self {
            replayed: true,
            ..Self::stored(retention)
        }
    }

    /// A header map that is full goes without.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let replayed = self.replayed.then_some(HeaderValue::from_static("true"));
        let recorded = self.recorded.map(HeaderValue::from_static);
        let retention = self.retention.map(|kept| kept.as_secs().into());
        let marks = [
            (IDEMPOTENT_REPLAYED, replayed),
            (IDEMPOTENCY_RECORDED, recorded),
            (IDEMPOTENCY_RETENTION, retention),
        ];
        for (name, value) in marks {
            if let Some(value) = value {
                let _full = headers.try_insert(name, value);
            }
        }
    }
}
