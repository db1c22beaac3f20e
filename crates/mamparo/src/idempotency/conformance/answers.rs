//! Answers come back as they were.

use http::{HeaderMap, HeaderValue, StatusCode};

use super::super::{Answer, Begun, IdempotencyStore, Kept, RecordState, SealedAnswer, Written};
use super::setup::{LONG, answer, begin, found, is, key, ok, started};

/// The largest that a test stores: the largest answer that a layer can be set to keep is 16 MiB.
const BIG: usize = 16 << 20;

/// Answers of no bytes, and of megabytes, come back whole.
///
/// # Panics
///
/// Panics if one does not.
pub async fn big_answers_come_back_whole<St: IdempotencyStore>(store: &St) {
    for length in [0, 1, 4096, 256 * 1024, BIG] {
        let body: Vec<u8> = (0..length).map(|at| (at * 31 % 251) as u8).collect();
        comes_back(store, answer(body)).await;
    }
}

/// Every byte comes back as it was, in a body as in a header, and so do repeated headers, trailers and odd statuses.
///
/// # Panics
///
/// Panics if one does not.
pub async fn binary_answers_come_back_byte_for_byte<St: IdempotencyStore>(store: &St) {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut headers = HeaderMap::new();
    // All that a header may hold (RFC 9110 §5.5).
    let visible = bytes.iter().copied();
    let visible: Vec<u8> = visible
        .filter(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f))
        .collect();
    if let Ok(value) = HeaderValue::from_bytes(&visible) {
        headers.append("etag", value.clone());
        headers.append("etag", value);
    }
    let mut made = Answer::new(
        StatusCode::IM_A_TEAPOT,
        headers.clone(),
        Kept::Body(bytes.into()),
    );
    made.trailers = Some(headers);
    comes_back(store, made.seal()).await;
    for kept in [Kept::AnswerTooLarge, Kept::RequestTooLarge, Kept::Broken] {
        let none = Answer::new(StatusCode::OK, HeaderMap::new(), kept);
        comes_back(store, none.seal()).await;
    }
}

async fn comes_back<St: IdempotencyStore>(store: &St, sealed: SealedAnswer) {
    let begin = begin(key());
    let lease = started(store, &begin).await;
    is(
        store.complete(lease, &sealed, LONG),
        Written::Done,
        "completed",
    )
    .await;
    let looked = found(store, begin.id).await;
    let Begun::Found(record) = ok(store.begin(&begin).await) else {
        return assert_eq!("run", "found", "a completed key is not run again");
    };
    assert_eq!(looked.as_ref(), Some(&record), "found as it is begun");
    let RecordState::Completed(stored) = record.state else {
        return assert_eq!("started", "completed", "it was completed");
    };
    assert!(
        stored == sealed,
        "the answer is not the one that was stored"
    );
    assert_eq!(ok(stored.open()), ok(sealed.open()));
}
