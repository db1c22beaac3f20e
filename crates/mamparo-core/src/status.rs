//! A rejection as tonic's status.

use std::sync::OnceLock;

use http::HeaderMap;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use crate::Rejection;
use crate::grpc::{self, Pushback};

/// The status of a rejection, made when somebody asks for it: most rejections end where nobody does.
#[derive(Debug)]
pub(crate) struct LazyStatus(OnceLock<Status>);

impl LazyStatus {
    /// Not made yet.
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the status of the rejection that this belongs to.
    pub(crate) fn of(&self, rejection: &Rejection) -> &Status {
        self.0.get_or_init(|| status(rejection))
    }
}

/// A copy makes its own, since it may be changed first.
impl Clone for LazyStatus {
    fn clone(&self) -> Self {
        Self::new()
    }
}

#[cold]
fn status(rejection: &Rejection) -> Status {
    let code = grpc::Code::of_rejection(rejection);
    let code = Code::from_i32(code.number().into());
    let Some(wait) = rejection.retry_after() else {
        return Status::new(code, rejection.to_string());
    };
    let mut metadata = HeaderMap::new();
    metadata.insert(grpc::GRPC_RETRY_PUSHBACK_MS, Pushback::After(wait).value());
    let metadata = MetadataMap::from_headers(metadata);
    Status::with_metadata(code, rejection.to_string(), metadata)
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::io;
    use std::time::Duration;

    use super::*;
    use crate::{BoxError, Ending, Kind, Reason, Resend, RetryError, TransportError};

    const REASONS: [(Reason, Code); 10] = [
        (Reason::DeadlineExceeded, Code::DeadlineExceeded),
        (Reason::AttemptTimedOut, Code::DeadlineExceeded),
        (Reason::BodyIdle, Code::DeadlineExceeded),
        (Reason::ConnectTimedOut, Code::Unavailable),
        (Reason::MalformedDeadline, Code::Internal),
        (Reason::BreakerOpen, Code::Unavailable),
        (Reason::BulkheadFull, Code::ResourceExhausted),
        (Reason::RateLimited, Code::ResourceExhausted),
        (Reason::AboveBurst, Code::ResourceExhausted),
        (Reason::Overloaded, Code::Unavailable),
    ];

    fn wrapped(rejection: Rejection) -> [BoxError; 4] {
        let again = rejection.clone();
        let retry = |source| RetryError::new("d".into(), Ending::new(2, None, false), None, source);
        let transport = |source| TransportError::new(Kind::Connect, Resend::Always, source);
        [
            rejection.clone().into(),
            retry(rejection.clone().into()).into(),
            transport(BoxError::from(rejection)).into(),
            retry(io::Error::other(transport(again.into())).into()).into(),
        ]
    }

    /// `ST-01`, `ST-05`: however deep it lies.
    #[test]
    fn tonic_finds_the_code_of_a_rejection_in_any_error() {
        for (reason, code) in REASONS {
            for error in wrapped(Rejection::cut(reason, "catalog".into())) {
                let shown = format!("{reason:?} in {error:?}");
                let status = Status::try_from_error(error).expect(&shown);
                assert_eq!(status.code(), code, "{shown}");
                assert!(status.message().starts_with("catalog: "), "{shown}");
                assert!(status.metadata().is_empty(), "{shown}");
            }
        }
    }

    #[test]
    fn a_status_leads_back_to_its_rejection() {
        for error in wrapped(Rejection::refused(Reason::BreakerOpen, "catalog".into())) {
            let status = Status::from_error(error);
            let found = Rejection::of(&status).expect("the error is the status's source");
            assert!(found.is_breaker_open() && !found.sent());
        }
    }

    /// `PB-03`: rounded up, since whoever is told to wait must not come early.
    #[test]
    fn a_known_wait_is_in_the_statuss_metadata() {
        let rejection = Rejection::refused(Reason::RateLimited, "catalog".into());
        let waits = [
            (Duration::ZERO, "0"),
            (Duration::from_micros(1_001), "2"),
            (Duration::from_secs(12), "12000"),
            (Duration::MAX, "2147483647"),
        ];
        for (wait, written) in waits {
            let status = Status::from_error(rejection.clone().with_retry_after(wait).into());
            assert_eq!(
                status.metadata().get("grpc-retry-pushback-ms").unwrap(),
                written
            );
        }
    }

    #[test]
    fn a_copy_that_is_changed_has_a_status_of_its_own() {
        let first = Rejection::refused(Reason::BreakerOpen, "catalog".into());
        assert!(first.source().is_some());
        let second = first.clone().with_retry_after(Duration::from_secs(1));
        let status = second.source().unwrap().downcast_ref::<Status>().unwrap();
        assert!(status.metadata().contains_key("grpc-retry-pushback-ms"));
        let before = first.source().unwrap().downcast_ref::<Status>().unwrap();
        assert!(before.metadata().is_empty());
    }

    /// Each layer's future keeps room for one.
    #[test]
    fn a_rejection_stays_small() {
        let size = size_of::<Rejection>();
        assert!(size <= 72, "{size} bytes");
    }
}
