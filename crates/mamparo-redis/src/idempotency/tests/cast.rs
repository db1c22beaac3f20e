//! Who plays in the tests.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use mamparo::idempotency::{
    Answer, Begin, Begun, Fence, Fingerprint, IdempotencyStore as _, Kept, KeyId, SealedAnswer,
};
use mamparo_testkit::private::PrivateRedis;

use super::super::RedisIdempotency;
use crate::RedisServer;

pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(super) const RUN: Begun = Begun::Run { again: false };

pub(super) fn store(server: &PrivateRedis) -> RedisIdempotency {
    RedisIdempotency::new(RedisServer::at(&server.url()).unwrap())
}

pub(super) fn begin() -> Begin {
    let id = KeyId::from_bytes(*Fence::fresh().as_bytes());
    Begin::new(id, Fingerprint::from_bytes([1; 32]), HOUR, HOUR)
}

pub(super) fn answer(body: impl Into<Bytes>) -> SealedAnswer {
    Answer::new(StatusCode::OK, HeaderMap::new(), Kept::Body(body.into())).seal()
}

/// A key that is completed with that.
pub(super) async fn completed(store: &RedisIdempotency, body: &'static str) -> Begin {
    let begin = begin();
    assert_eq!(store.begin(&begin).await.unwrap(), RUN);
    let written = store.complete(begin.lease(), &answer(body), HOUR).await;
    assert_eq!(written.unwrap(), mamparo::idempotency::Written::Done);
    begin
}
