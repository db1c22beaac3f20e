//! What is kept of an answer.

use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION,
    CONTENT_TYPE, ETAG, EXPIRES, HeaderName, LAST_MODIFIED, LINK, LOCATION, RETRY_AFTER, VARY,
};
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use mamparo_core::grpc::{Code, GRPC_MESSAGE, GRPC_STATUS, GRPC_STATUS_DETAILS, is_grpc};

use super::config::Stored;
use super::{Answer, Kept};

/// The headers that are kept of every answer: what says what the body is, and where things are.
///
/// Not among them: cookies, which belong to one exchange, and what a server writes anew each time.
pub(super) const KEPT_HEADERS: [HeaderName; 17] = [
    CACHE_CONTROL,
    CONTENT_DISPOSITION,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LOCATION,
    CONTENT_TYPE,
    ETAG,
    EXPIRES,
    GRPC_MESSAGE,
    GRPC_STATUS,
    GRPC_STATUS_DETAILS,
    HeaderName::from_static("grpc-encoding"),
    LAST_MODIFIED,
    LINK,
    LOCATION,
    RETRY_AFTER,
    VARY,
];

/// What is kept of a handler's answer.
pub(super) fn answer(
    names: &[HeaderName],
    head: &Parts,
    body: Kept,
    trailers: Option<&HeaderMap>,
) -> Answer {
    let mut answer = Answer::new(head.status, only(names, &head.headers), body);
    answer.trailers = trailers.map(|trailers| only(names, trailers));
    answer
}

pub(super) fn only(names: &[HeaderName], headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        if names.contains(name) {
            kept.append(name, value.clone());
        }
    }
    kept
}

/// Tells whether an answer is stored.
pub(super) fn is_stored(stored: Stored, answer: &Answer) -> bool {
    let failed = match is_grpc(&answer.headers) {
        true => of_code(code(answer)),
        false => of_status(answer.status),
    };
    match stored {
        Stored::All => true,
        Stored::NotServerErrors => failed != Failed::Server,
        Stored::Successes => failed == Failed::No,
    }
}

/// Who is at fault, by an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failed {
    No,
    Caller,
    Server,
}

fn of_status(status: StatusCode) -> Failed {
    match status.as_u16() {
        ..400 => Failed::No,
        400..500 => Failed::Caller,
        _ => Failed::Server,
    }
}

/// By the statuses that these codes are in HTTP.
const fn of_code(code: Code) -> Failed {
    match code {
        Code::Ok => Failed::No,
        Code::Unknown
        | Code::DeadlineExceeded
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => Failed::Server,
        _ => Failed::Caller,
    }
}

fn code(answer: &Answer) -> Code {
    let trailers = answer.trailers.as_ref();
    let value = trailers.and_then(|trailers| trailers.get(GRPC_STATUS));
    let value = value.or_else(|| answer.headers.get(GRPC_STATUS));
    value.map_or(Code::Unknown, Code::from_value)
}
