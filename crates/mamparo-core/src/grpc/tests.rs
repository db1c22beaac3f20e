use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Empty, Full};
use proptest::prelude::*;

use super::*;
use crate::classify::{Classify, End, Ends, Outcome, Settle};
use crate::{BoxError, Class, Kind, Reason, Rejection, Resend, TransportError, Verdict};

fn answer(headers: &[(&'static str, &str)]) -> Response<()> {
    let mut response = Response::new(());
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).unwrap();
        response.headers_mut().append(*name, value);
    }
    response
}

fn judged(headers: &[(&'static str, &str)]) -> Verdict {
    Grpc.head(Ok(&answer(headers))).verdict
}

/// GS-01 and GS-03: decimal without leading zeros; what can't be read is UNKNOWN.
#[test]
fn a_status_is_read_by_the_vectors() {
    let read = |text: &str| Code::from_value(&HeaderValue::from_str(text).unwrap());
    for code in Code::ALL {
        assert_eq!(read(&code.number().to_string()), code);
    }
    for text in [
        "", "99", "17", "abc", "014", "00", "-1", "+1", "1 ", "1.0", "١",
    ] {
        assert_eq!(read(text), Code::Unknown, "{text:?}");
    }
}

/// GS-05: the table for answers without a status, and 200 among "everything else".
#[test]
fn an_answer_without_a_status_is_read_by_its_http_status() {
    let expected = [
        (400, Code::Internal),
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (404, Code::Unimplemented),
        (429, Code::Unavailable),
        (431, Code::Internal),
        (500, Code::Unknown),
        (502, Code::Unavailable),
        (503, Code::Unavailable),
        (504, Code::Unavailable),
        (302, Code::Unknown),
        (200, Code::Unknown),
    ];
    for (status, code) in expected {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(Code::from_http(status), code, "{status}");
    }
    let mut page = answer(&[("content-type", "text/html")]);
    assert_eq!(
        Grpc.head(Ok(&page)).verdict.kind(),
        Some(Kind::Server),
        "an HTML page with 200 is no answer"
    );
    *page.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let head = Grpc.head(Ok(&page));
    assert!(head.last && head.verdict.kind() == Some(Kind::Unavailable));
    let provided = [("grpc-status", "5"), ("content-type", "text/html")];
    assert_eq!(
        judged(&provided).kind(),
        Some(Kind::Client),
        "a status goes before the table"
    );
}

/// GS-02: a head without a status commits the call.
#[test]
fn a_head_without_a_status_is_open() {
    let head = Grpc.head(Ok(&answer(&[("content-type", "application/grpc+proto")])));
    assert!(!head.last && head.verdict == Verdict::SUCCESS);
}

/// PB-01 to PB-07: exact, or a no.
#[test]
fn pushback_is_read_by_the_vectors() {
    let of = |values: &[&str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(GRPC_RETRY_PUSHBACK_MS, value.parse().unwrap());
        }
        Pushback::of(&headers)
    };
    let after = |millis| Some(Pushback::After(Duration::from_millis(millis)));
    assert_eq!(of(&[]), None);
    assert_eq!(of(&["0"]), after(0));
    assert_eq!(of(&["1000"]), after(1000));
    assert_eq!(of(&["007"]), after(7));
    assert_eq!(of(&["2147483647"]), after(2_147_483_647));
    for no in [
        "-1",
        "",
        "abc",
        "1.5",
        "5s",
        " ",
        "+100",
        "2147483648",
        "99999999999999999999",
    ] {
        assert_eq!(of(&[no]), Some(Pushback::Stop), "{no:?}");
    }
    assert_eq!(of(&["1", "1"]), Some(Pushback::Stop));
}

#[test]
fn pushback_is_part_of_the_verdict() {
    let verdict = judged(&[("grpc-status", "14"), ("grpc-retry-pushback-ms", "250")]);
    assert_eq!(verdict.hint(), Some(Duration::from_millis(250)));
    assert!(verdict.is_exact());
    let stop = judged(&[("grpc-status", "14"), ("grpc-retry-pushback-ms", "-1")]);
    assert!(stop.is_forbidden());
    assert_eq!(stop.resend(), Resend::IfListed(Code::Unavailable));
    let ok = judged(&[("grpc-status", "0"), ("grpc-retry-pushback-ms", "250")]);
    assert_eq!(ok, Verdict::SUCCESS);
}

/// Row P-C8: what the request is at fault for is not the dependency's failure.
#[test]
fn a_code_blames_the_dependency_or_the_request() {
    let blamed =
        |code: Code| judged(&[("grpc-status", &code.number().to_string())]).blames_dependency();
    let by: Vec<_> = Code::ALL.into_iter().filter(|code| blamed(*code)).collect();
    use Code as C;
    let expected = [
        C::Cancelled,
        C::Unknown,
        C::DeadlineExceeded,
        C::ResourceExhausted,
        C::Internal,
        C::Unavailable,
        C::DataLoss,
    ];
    assert_eq!(by, expected);
}

fn ended(end: End<'_>) -> Verdict {
    GrpcEnds.end(Verdict::SUCCESS, end)
}

/// Row P-C7: the trailers decide; a reader that goes away says nothing.
#[test]
fn the_end_of_a_stream_is_its_trailers() {
    let mut trailers = HeaderMap::new();
    trailers.insert(GRPC_STATUS, "0".parse().unwrap());
    assert_eq!(ended(End::Trailers(Some(&trailers))), Verdict::SUCCESS);
    trailers.insert(GRPC_STATUS, "14".parse().unwrap());
    let unavailable = ended(End::Trailers(Some(&trailers)));
    assert_eq!(unavailable.kind(), Some(Kind::Unavailable));
    assert_eq!(
        unavailable.resend(),
        Resend::Never,
        "the head has committed the call"
    );
    assert_eq!(ended(End::Trailers(None)).kind(), Some(Kind::Server));
    assert_eq!(ended(End::Dropped).class(), Class::Ignored);
    let broken: BoxError = TransportError::new(Kind::Reset, Resend::IfIdempotent, "reset").into();
    assert_eq!(ended(End::Error(&broken)).kind(), Some(Kind::Reset));
    assert_eq!(ended(End::Error(&broken)).resend(), Resend::Never);
}

/// Row P-B8: a proxy's page does not say that the request was not done, whatever stands for its status.
#[test]
fn a_page_in_the_place_of_unavailable_leaves_doubt() {
    for http in [429, 502, 503, 504] {
        let mut page = Response::builder().status(http).body(()).unwrap();
        let verdict = |page: &Response<()>| Grpc.head(Ok(page)).verdict;
        assert_eq!(verdict(&page).resend(), Resend::IfIdempotent, "{http}");
        page.headers_mut()
            .insert(GRPC_STATUS, "14".parse().unwrap());
        assert_eq!(verdict(&page).resend(), Resend::IfIdempotent, "{http}");
        assert_eq!(verdict(&page).kind(), Some(Kind::Unavailable), "{http}");
    }
}

/// GS-06 needs the transport, which says the code.
#[test]
fn an_error_stands_for_a_code() {
    let code = |error: BoxError| Code::of_error(&error);
    let reset = TransportError::new(Kind::Reset, Resend::IfIdempotent, "reset");
    assert_eq!(code(reset.into()), Code::Unavailable);
    let calm = TransportError::new(Kind::Reset, Resend::IfIdempotent, "calm");
    assert_eq!(
        code(calm.with_code(Code::ResourceExhausted).into()),
        Code::ResourceExhausted
    );
    let late = Rejection::cut(Reason::DeadlineExceeded, "d".into());
    assert_eq!(code(late.into()), Code::DeadlineExceeded);
    assert_eq!(code("who knows".into()), Code::Unknown);
}

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Verdict>>>);

impl Settle for Heard {
    fn settle(&mut self, verdict: Verdict) {
        self.0.lock().unwrap().push(verdict);
    }
}

fn tied<B>(body: B) -> (Response<impl Body<Data = Bytes, Error = BoxError>>, Heard)
where
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    let heard = Heard::default();
    let response = Response::builder().header("content-type", "application/grpc");
    let response = response.body(body).unwrap();
    let head = Grpc.head(Ok(&response));
    (Grpc.tie(response, head, heard.clone()), heard)
}

#[tokio::test]
async fn a_guard_hears_the_status_of_the_trailers() {
    let mut trailers = HeaderMap::new();
    trailers.insert(GRPC_STATUS, "13".parse().unwrap());
    let body =
        Full::new(Bytes::from_static(b"x")).with_trailers(std::future::ready(Some(Ok(trailers))));
    let (response, heard) = tied(body);
    assert!(heard.0.lock().unwrap().is_empty());
    response.into_body().collect().await.unwrap();
    assert_eq!(heard.0.lock().unwrap()[0].kind(), Some(Kind::Server));
}

#[test]
fn a_head_with_no_status_and_no_stream_is_a_failure() {
    let (_, heard) = tied(Empty::<Bytes>::new());
    assert_eq!(heard.0.lock().unwrap()[0].kind(), Some(Kind::Server));
}

#[test]
fn a_stream_that_its_reader_drops_says_nothing() {
    let (response, heard) = tied(Full::new(Bytes::from_static(b"x")));
    drop(response);
    assert_eq!(heard.0.lock().unwrap()[0], Verdict::IGNORED);
}

/// GS-04: invalid encodings are kept, and nothing fails.
#[test]
fn a_message_is_decoded_by_the_vectors() {
    let decoded = |text: &'static str| message::decode(&HeaderValue::from_static(text));
    assert_eq!(decoded("%E4%BD%A0"), "你");
    assert_eq!(decoded("100%"), "100%");
    assert_eq!(decoded("%zz%4"), "%zz%4");
    assert_eq!(decoded("%FF"), "\u{fffd}");
}

proptest! {
    #[test]
    fn a_message_comes_back_as_it_was(text in ".{0,200}") {
        prop_assert_eq!(message::decode(&message::encode(&text)), text);
    }

    #[test]
    fn a_message_has_a_bound(text in "[ü%a]{900,2000}") {
        let value = message::encode(&text);
        prop_assert!(value.len() <= 3 * message::MAX_LENGTH);
        prop_assert!(text.starts_with(&message::decode(&value)));
    }

    #[test]
    fn hostile_headers_never_panic(status in prop::collection::vec(32u8..=255, 0..12)) {
        prop_assume!(!status.contains(&127));
        let value = HeaderValue::from_bytes(&status).unwrap();
        let mut response = Response::new(());
        response.headers_mut().insert(GRPC_STATUS, value.clone());
        response.headers_mut().insert(GRPC_RETRY_PUSHBACK_MS, value.clone());
        let _verdict = Grpc.head(Ok(&response));
        let _text = message::decode(&value);
    }
}

/// RP-04: who records a call says its status, wherever that came from.
#[test]
fn a_verdict_carries_the_status_that_it_was_read_from() {
    let unavailable = Some(Code::Unavailable);
    assert_eq!(judged(&[("grpc-status", "14")]).code(), unavailable);
    let page = Response::builder().status(503).body(()).unwrap();
    assert_eq!(Grpc.head(Ok(&page)).verdict.code(), unavailable);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("15"));
    let trailers = End::Trailers(Some(&trailers));
    assert_eq!(ended(trailers).code(), Some(Code::DataLoss));
    let cut = Rejection::cut(Reason::AttemptTimedOut, "d".into()).into();
    let verdict = Classify::<Response<()>>::head(&Grpc, Err(&cut)).verdict;
    assert_eq!(verdict.code(), Some(Code::DeadlineExceeded));
    let unknown = BoxError::from("nobody knows it");
    let verdict = Classify::<Response<()>>::head(&Grpc, Err(&unknown)).verdict;
    assert_eq!(verdict.code(), None);
}
