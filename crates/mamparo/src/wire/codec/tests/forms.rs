//! What every test of a form asks: read this, write that, refuse those.

pub(super) use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) use http::HeaderValue;

pub(super) use super::super::{DeadlineHeader, Malformed, Remaining};

/// A wall clock that stands at the second on which Finagle's vectors were made.
pub(super) fn wall() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

pub(super) fn read(
    header: &DeadlineHeader,
    text: impl AsRef<[u8]>,
) -> Result<Remaining, Malformed> {
    let value = HeaderValue::from_bytes(text.as_ref()).expect("a legal field value");
    header.read(&value, wall())
}

pub(super) fn write(header: &DeadlineHeader, remaining: Duration) -> String {
    let value = header.write(remaining, wall());
    value.to_str().expect("visible ASCII").to_owned()
}

/// One header of every form.
pub(super) fn every_form() -> [DeadlineHeader; 9] {
    [
        DeadlineHeader::grpc_timeout(),
        DeadlineHeader::request_timeout_ms(),
        DeadlineHeader::connect_timeout_ms(),
        DeadlineHeader::envoy_expected_timeout_ms(),
        DeadlineHeader::finagle(),
        DeadlineHeader::millis("in-millis").unwrap(),
        DeadlineHeader::seconds("in-seconds").unwrap(),
        DeadlineHeader::epoch_millis("at-millis").unwrap(),
        DeadlineHeader::rfc3339("at").unwrap(),
    ]
}

pub(super) fn seconds(seconds: u64) -> Remaining {
    Remaining::For(Duration::from_secs(seconds))
}

pub(super) fn millis(millis: u64) -> Remaining {
    Remaining::For(Duration::from_millis(millis))
}

/// Asserts that a header refuses each of these values.
#[track_caller]
pub(super) fn refuses<T: AsRef<[u8]>>(header: &DeadlineHeader, texts: impl IntoIterator<Item = T>) {
    for text in texts {
        let shown = String::from_utf8_lossy(text.as_ref()).into_owned();
        assert!(
            read(header, text).is_err(),
            "{} took {shown:?}",
            header.name()
        );
    }
}
