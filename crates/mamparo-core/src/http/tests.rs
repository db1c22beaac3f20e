use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use ::http::header::{AGE, DATE, RETRY_AFTER};
use ::http::{HeaderMap, HeaderName, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use proptest::prelude::*;

use super::*;
use crate::clock::WallClock;
use crate::{BoxError, Classify, Head, Kind, Outcome, Resend, Settle, Verdict};

/// Sun 06 Nov 1994 08:49:37 GMT, the standard's own example.
#[derive(Debug)]
struct Then;

impl WallClock for Then {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }
}

fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, value.parse().unwrap());
    }
    headers
}

fn retry_after(value: &str) -> Option<u64> {
    hint::retry_after(&headers(&[(RETRY_AFTER, value)]), &Then).map(|wait| wait.as_secs())
}

fn verdict(status: u16, pairs: &[(HeaderName, &str)]) -> Verdict {
    judge(&Http::default(), status, pairs).verdict
}

fn judge(http: &Http, status: u16, pairs: &[(HeaderName, &str)]) -> Head {
    let mut response = Response::builder().status(status).body(()).unwrap();
    *response.headers_mut() = headers(pairs);
    http.head(Ok(&response))
}

/// RA-01, RA-02, RA-03, RA-07.
#[test]
fn retry_after_in_seconds_is_digits_with_optional_space_around() {
    assert_eq!(retry_after("120"), Some(120));
    assert_eq!(retry_after("0"), Some(0));
    assert_eq!(retry_after("007"), Some(7));
    assert_eq!(retry_after(" 120 "), Some(120));
}

/// RA-04, RA-15, RA-16, RA-17.
#[test]
fn what_is_not_retry_after_is_ignored() {
    for bad in [
        "-1",
        "+5",
        "1.5",
        "1e3",
        "0x10",
        "12s",
        "abc",
        "",
        "sun, 06 nov 1994 08:50:07 gmt",
        "Sun, 06 Nov 1994 08:50:07 UTC",
        "Sun, 06 Nov 1994 08:50:07 +0000",
        "1994-11-06T08:50:07Z",
        "06 Nov 1994 08:50:07 GMT",
    ] {
        assert_eq!(retry_after(bad), None, "{bad:?}");
    }
    let mut wide = HeaderMap::new();
    wide.insert(
        RETRY_AFTER,
        ::http::HeaderValue::from_bytes("５".as_bytes()).unwrap(),
    );
    assert_eq!(hint::retry_after(&wide, &Then), None);
}

/// RA-06, RA-13, row C3: an absurd wait is a long wait, never a short one.
#[test]
fn an_absurd_wait_does_not_overflow_into_a_short_one() {
    let longest = Some(hint::MAX_HINT.as_secs());
    assert_eq!(retry_after("99999999999"), longest);
    assert_eq!(retry_after(&"9".repeat(400)), longest);
    assert_eq!(retry_after("Fri, 31 Dec 9999 23:59:59 GMT"), longest);
}

/// RA-09, RA-10, RA-11, RA-12, row C2.
#[test]
fn all_three_http_dates_are_read_and_a_past_one_is_no_wait() {
    assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:07 GMT"), Some(30));
    assert_eq!(retry_after("Sunday, 06-Nov-94 08:50:07 GMT"), Some(30));
    assert_eq!(retry_after("Sun Nov  6 08:50:07 1994"), Some(30));
    assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:36 GMT"), Some(0));
    assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0));
}

/// P-B10, RA-19: a client whose clock is an hour off still waits right.
#[test]
fn a_date_is_relative_to_the_answers_own_date_unless_it_was_stored() {
    let hour_later = (DATE, "Sun, 06 Nov 1994 09:49:37 GMT");
    let in_ten = (RETRY_AFTER, "Sun, 06 Nov 1994 09:49:47 GMT");
    let fresh = headers(&[hour_later.clone(), in_ten.clone()]);
    assert_eq!(
        hint::retry_after(&fresh, &Then),
        Some(Duration::from_secs(10))
    );
    let stored = headers(&[hour_later, in_ten, (AGE, "60")]);
    assert_eq!(
        hint::retry_after(&stored, &Then),
        Some(Duration::from_secs(3610))
    );
}

#[test]
fn of_two_retry_afters_the_longest_counts() {
    let two = headers(&[
        (RETRY_AFTER, "3"),
        (RETRY_AFTER, "junk"),
        (RETRY_AFTER, "5"),
    ]);
    assert_eq!(hint::retry_after(&two, &Then), Some(Duration::from_secs(5)));
}

/// RA-23, RL-02, RV-09.
#[test]
fn retry_after_outranks_rate_limit() {
    let limit = HeaderName::from_static("ratelimit");
    let both = headers(&[(RETRY_AFTER, "5"), (limit.clone(), "\"d\";r=0;t=60")]);
    assert_eq!(
        hint::server_wait(&both, &Then),
        Some(Duration::from_secs(5))
    );
    let one = headers(&[(limit, "\"d\";r=0;t=60")]);
    assert_eq!(
        hint::server_wait(&one, &Then),
        Some(Duration::from_secs(60))
    );
}

/// RL-01, RL-04, RV-01, RV-03, RV-05, RV-08.
#[test]
fn rate_limit_counts_only_when_nothing_is_left_and_the_form_is_the_current_one() {
    let read = |value: &str| {
        hint::rate_limit(&headers(&[(HeaderName::from_static("ratelimit"), value)]))
            .map(|wait| wait.as_secs())
    };
    assert_eq!(read("\"default\";r=50;t=30"), None);
    assert_eq!(read("\"default\";r=0;t=30"), Some(30));
    assert_eq!(
        read("\"a\";r=0;t=3, \"b\";r=0;t=9, \"c\";r=1;t=99"),
        Some(9)
    );
    for bad in [
        "default;r=0;t=5",
        "limit=10, remaining=0, reset=7",
        "\"d\";t=5",
        "\"d\";r=0;t=-5",
        "\"d\";r=0",
    ] {
        assert_eq!(read(bad), None, "{bad:?}");
    }
    let limit = HeaderName::from_static("ratelimit");
    let stored = headers(&[(limit, "\"d\";r=0;t=5"), (AGE, "3")]);
    assert_eq!(hint::rate_limit(&stored), None);
}

/// RM-10, RM-11, RM-12 and the table of design defaults.
#[test]
fn the_table_says_what_each_status_means() {
    let sent_again = |status| verdict(status, &[]).resend();
    for status in [408, 429, 500, 502, 503, 504] {
        assert_eq!(sent_again(status), Resend::IfIdempotent, "{status}");
    }
    assert_eq!(sent_again(409), Resend::IfKeyed);
    assert_eq!(sent_again(425), Resend::UnlessEarlyData);
    for status in [400, 401, 404, 413, 422, 501, 505] {
        assert_eq!(sent_again(status), Resend::Never, "{status}");
    }
    assert!(verdict(500, &[]).is_once() && verdict(425, &[]).is_once());
    assert_eq!(verdict(304, &[]), Verdict::SUCCESS);
    assert!(
        !verdict(404, &[]).blames_dependency(),
        "the request is at fault"
    );
}

/// RA-20: a wait asked for on a status that is not retried changes nothing.
#[test]
fn a_hint_on_an_answer_that_is_not_sent_again_is_ignored() {
    assert_eq!(verdict(200, &[(RETRY_AFTER, "5")]), Verdict::SUCCESS);
    assert_eq!(verdict(404, &[(RETRY_AFTER, "5")]).hint(), None);
    assert_eq!(
        verdict(503, &[(RETRY_AFTER, "5")]).hint(),
        Some(Duration::from_secs(5))
    );
}

#[test]
fn the_peers_own_word_outranks_the_table() {
    let should = HeaderName::from_static("x-should-retry");
    let http = Http::builder()
        .should_retry_header(should.clone())
        .build()
        .unwrap();
    let resend = |status, value: &str| {
        judge(&http, status, &[(should.clone(), value)])
            .verdict
            .resend()
    };
    assert_eq!(resend(503, "false"), Resend::Never);
    assert_eq!(resend(404, "True"), Resend::IfIdempotent);
    assert_eq!(resend(503, "maybe"), Resend::IfIdempotent);
    let exhausted = verdict(503, &[(EXHAUSTED_HEADER, "exhausted")]);
    assert!(exhausted.is_forbidden());
}

#[test]
fn statuses_can_be_added_to_the_table_and_taken_away() {
    let http = Http::builder()
        .also_retry(StatusCode::NOT_FOUND)
        .never_retry(StatusCode::INTERNAL_SERVER_ERROR)
        .build()
        .unwrap();
    assert_eq!(
        judge(&http, 404, &[]).verdict.resend(),
        Resend::IfIdempotent
    );
    assert_eq!(judge(&http, 500, &[]).verdict.resend(), Resend::Never);
    let twice = Http::builder()
        .also_retry(StatusCode::NOT_FOUND)
        .never_retry(StatusCode::NOT_FOUND);
    assert_eq!(twice.build().unwrap_err().setting(), "also_retry");
    let success = Http::builder().also_retry(StatusCode::OK).build();
    assert_eq!(success.unwrap_err().value(), "200");
}

fn ok_body() -> Full<bytes::Bytes> {
    Full::from("ok")
}

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Verdict>>>);

impl Settle for Heard {
    fn settle(&mut self, verdict: Verdict) {
        self.0.lock().unwrap().push(verdict);
    }
}

impl Heard {
    fn all(&self) -> Vec<Verdict> {
        self.0.lock().unwrap().clone()
    }
}

/// Law 9: a failure is final at the head.
#[test]
fn a_failure_is_settled_at_the_head() {
    let heard = Heard::default();
    let response = Response::builder().status(503).body(ok_body()).unwrap();
    let head = Http::default().head(Ok(&response));
    let _body = Http::default().tie(response, head, heard.clone());
    assert_eq!(heard.all(), [verdict(503, &[])]);
}

#[tokio::test]
async fn a_good_answer_is_settled_when_its_body_ends() {
    let heard = Heard::default();
    let tied = Http::default().tie(
        Response::new(ok_body()),
        Head::open(Verdict::SUCCESS),
        heard.clone(),
    );
    assert_eq!(heard.all(), []);
    tied.into_body().collect().await.unwrap();
    assert_eq!(heard.all(), [Verdict::SUCCESS]);
}

#[test]
fn an_answer_without_a_body_is_settled_at_the_head() {
    let heard = Heard::default();
    let response = Response::new(Empty::<bytes::Bytes>::new());
    let _tied = Http::default().tie(response, Head::open(Verdict::SUCCESS), heard.clone());
    assert_eq!(heard.all(), [Verdict::SUCCESS]);
}

/// P-C7: the caller may stop reading a good answer.
#[test]
fn dropping_a_good_body_early_is_a_success() {
    let heard = Heard::default();
    drop(Http::default().tie(
        Response::new(ok_body()),
        Head::open(Verdict::SUCCESS),
        heard.clone(),
    ));
    assert_eq!(heard.all(), [Verdict::SUCCESS]);
}

#[tokio::test]
async fn a_body_that_breaks_is_a_failure_that_is_not_sent_again() {
    let heard = Heard::default();
    let frames = futures_stream_of_error();
    let tied = Http::default().tie(
        Response::new(frames),
        Head::open(Verdict::SUCCESS),
        heard.clone(),
    );
    assert!(tied.into_body().collect().await.is_err());
    assert_eq!(heard.all(), [Verdict::failure(Kind::Reset, Resend::Never)]);
}

/// Law 6: a guard dropped at or after its deadline reports a timeout.
#[tokio::test(start_paused = true)]
async fn a_body_dropped_at_its_deadline_is_a_timeout() {
    let heard = Heard::default();
    let deadline = crate::Deadline::after(crate::clock::now(), Duration::from_secs(1));
    let tied = crate::CallContext::current()
        .with_deadline(deadline)
        .enter(|| {
            Http::default().tie(
                Response::new(ok_body()),
                Head::open(Verdict::SUCCESS),
                heard.clone(),
            )
        });
    tokio::time::advance(Duration::from_secs(1)).await;
    drop(tied);
    assert_eq!(
        heard.all(),
        [Verdict::failure(Kind::Timeout, Resend::Never)]
    );
}

fn futures_stream_of_error() -> impl http_body::Body<Data = bytes::Bytes, Error = BoxError> {
    struct Broken;
    impl http_body::Body for Broken {
        type Data = bytes::Bytes;
        type Error = BoxError;
        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, BoxError>>> {
            let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
            std::task::Poll::Ready(Some(Err(error.into())))
        }
    }
    Broken
}

#[test]
fn what_the_body_holds_is_given_back_before_the_guard_hears_of_the_end() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    struct Noting(&'static str, Arc<Mutex<Vec<&'static str>>>);
    impl Drop for Noting {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    impl Settle for Noting {
        fn settle(&mut self, _: Verdict) {
            self.1.lock().unwrap().push("settled");
        }
    }
    let body = ok_body().map_frame({
        let held = Noting("body gone", Arc::clone(&seen));
        move |frame| {
            let _ = &held;
            frame
        }
    });
    let guard = Noting("guard gone", Arc::clone(&seen));
    drop(GuardedBody::open(body, guard, Verdict::SUCCESS, HttpEnds));
    assert_eq!(
        *seen.lock().unwrap(),
        ["body gone", "settled", "guard gone"]
    );
}

#[tokio::test]
async fn a_guard_stands_around_each_poll_until_it_is_settled() {
    #[derive(Clone, Default)]
    struct Around(Arc<Mutex<u32>>);
    impl Settle for Around {
        fn settle(&mut self, _: Verdict) {}
        fn around<R>(&mut self, poll: impl FnOnce() -> R) -> R {
            *self.0.lock().unwrap() += 1;
            poll()
        }
    }
    let around = Around::default();
    let mut body = GuardedBody::open(ok_body(), around.clone(), Verdict::SUCCESS, HttpEnds);
    while body.frame().await.is_some() {}
    assert_eq!(*around.0.lock().unwrap(), 1, "the one frame is the last");
}

#[test]
fn a_megabyte_in_a_header_is_read_or_passed_over_and_never_waited_for_longer_than_the_longest() {
    let limit = HeaderName::from_static("ratelimit");
    let list = "\"a\";r=0;t=1, ".repeat(1 << 16);
    let values = ["9".repeat(1 << 20), " ".repeat(1 << 20), list];
    for value in &values {
        let hostile = headers(&[(RETRY_AFTER, value), (DATE, value), (limit.clone(), value)]);
        let wait = hint::server_wait(&hostile, &Then);
        assert!(wait.is_none_or(|wait| wait <= hint::MAX_HINT));
    }
    let many = headers(&vec![(RETRY_AFTER, "-1"); 10_000]);
    assert_eq!(hint::server_wait(&many, &Then), None);
}

proptest! {
    #[test]
    fn no_header_value_panics_or_waits_longer_than_the_longest(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let Ok(value) = ::http::HeaderValue::from_bytes(&bytes) else { return Ok(()) };
        let mut map = HeaderMap::new();
        map.insert(RETRY_AFTER, value.clone());
        map.insert("ratelimit", value.clone());
        map.insert(DATE, value);
        if let Some(wait) = hint::server_wait(&map, &Then) {
            prop_assert!(wait <= hint::MAX_HINT);
        }
    }
}
