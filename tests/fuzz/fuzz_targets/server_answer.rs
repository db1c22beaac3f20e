//! Feeds any status and header values of an answer to the HTTP classifier.
//!
//! Invariants: no panic; no wait is longer than the longest; a success is never sent again; the peer's "no" is obeyed.

#![no_main]

use http::{HeaderName, HeaderValue, Response, StatusCode};
use libfuzzer_sys::fuzz_target;
use mamparo_core::http::{EXHAUSTED_HEADER, Http, hint};
use mamparo_core::{Classify, Resend};

const NAMES: [HeaderName; 7] = [
    http::header::RETRY_AFTER,
    http::header::DATE,
    http::header::AGE,
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("x-should-retry"),
    EXHAUSTED_HEADER,
    http::header::CONTENT_TYPE,
];

fuzz_target!(|input: (u16, Vec<(u8, Vec<u8>)>)| {
    let (status, fields) = input;
    let mut answer = Response::new(());
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            let name = NAMES[usize::from(name) % NAMES.len()].clone();
            answer.headers_mut().append(name, value);
        }
    }
    let should_retry = HeaderName::from_static("x-should-retry");
    let Ok(http) = Http::builder().should_retry_header(should_retry).build() else {
        return;
    };
    let verdict = http.head(Ok(&answer)).verdict;
    assert!(verdict.hint().is_none_or(|wait| wait <= hint::MAX_HINT));
    if verdict.kind().is_none() || verdict.is_forbidden() {
        assert_eq!(verdict.resend(), Resend::Never);
    }
});
