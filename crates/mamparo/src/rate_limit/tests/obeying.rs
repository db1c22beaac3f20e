//! What the dependency says of its own limit, and whether it is obeyed.

use std::convert::Infallible;
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use mamparo_core::clock;
use tower::{Layer, Service, ServiceExt};

use super::super::*;
use super::cast::*;

type Headers = &'static [(&'static str, &'static str)];

fn answer(status: u16, headers: Headers) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    *response.headers_mut() = map;
    response
}

/// How long nothing passes after an answer; none when the next call passes at once.
async fn closed(policy: RateLimitBuilder, status: u16, headers: Headers) -> Option<Duration> {
    let layer = RateLimitLayer::http(policy.build().unwrap());
    let mut mail = layer.layer(tower::service_fn(move |_: Request<()>| {
        std::future::ready(Ok::<_, Infallible>(answer(status, headers)))
    }));
    mail.ready()
        .await
        .unwrap()
        .call(Request::new(()))
        .await
        .unwrap();
    let next = mail.ready().await.unwrap().call(Request::new(())).await;
    next.err().map(|error| retry_after(&error))
}

/// Within the tenth by which waits are lengthened at most.
fn about(seconds: u64) -> impl Fn(Option<Duration>) -> bool {
    move |wait| {
        wait.is_some_and(|wait| (secs(seconds)..=secs(seconds).mul_f64(1.1)).contains(&wait))
    }
}

const OBEYS: Duration = secs(600);

/// Vectors RL-01, RL-02, RL-04 to RL-06 and RV-09 of draft-ietf-httpapi-ratelimit-headers-10.
#[tokio::test(start_paused = true)]
async fn a_limit_that_is_used_up_is_obeyed_wherever_it_is_said() {
    let obeys = per_second(100).obey(OBEYS);
    let said = async |status, headers| closed(obeys, status, headers).await;
    let both: Headers = &[("retry-after", "3"), ("ratelimit", "\"a\";r=0;t=60")];
    assert!(about(3)(said(429, both).await));
    assert!(
        about(60)(said(200, both).await),
        "no refusal, no Retry-After"
    );
    assert!(about(7)(said(200, &[("ratelimit", "\"a\";r=0;t=7")]).await));
    assert_eq!(said(200, &[("ratelimit", "\"a\";r=5;t=7")]).await, None);
    assert_eq!(said(200, &[("ratelimit", "a;r=0;t=7")]).await, None);
    let stored: Headers = &[("ratelimit", "\"a\";r=0;t=7"), ("age", "3")];
    assert_eq!(said(200, stored).await, None);
    let endless: Headers = &[("retry-after", "999999999999999999999")];
    assert_eq!(said(503, endless).await, Some(OBEYS));
    assert_eq!(said(503, &[("retry-after", "0")]).await, None);
}

#[tokio::test(start_paused = true)]
async fn it_is_not_obeyed_unless_told_to() {
    let headers: Headers = &[("retry-after", "3")];
    assert_eq!(closed(per_second(100), 429, headers).await, None);
}

#[tokio::test(start_paused = true)]
async fn after_the_wait_calls_pass_one_by_one_and_not_as_a_burst() {
    let policy = per_second(10).burst(10).obey(OBEYS).max_wait(OBEYS);
    let layer = RateLimitLayer::http(policy.build().unwrap());
    let mail = layer.layer(tower::service_fn(|_: Request<()>| {
        std::future::ready(Ok::<_, Infallible>(answer(429, &[("retry-after", "5")])))
    }));
    let start = clock::now();
    mail.clone().oneshot(Request::new(())).await.unwrap();
    mail.clone().oneshot(Request::new(())).await.unwrap();
    assert!(start.elapsed() >= secs(5));
    // A call that waited hears as well: the second answer closes it again.
    mail.oneshot(Request::new(())).await.unwrap();
    assert!(start.elapsed() >= secs(10));
}

#[tokio::test(start_paused = true)]
async fn one_keys_answer_closes_no_others_limit() {
    let layer = RateLimitLayer::http(per_second(100).obey(OBEYS).build().unwrap())
        .per_key(|request: &Request<u8>| Some(*request.body()));
    let mail = layer.layer(tower::service_fn(|_: Request<u8>| {
        std::future::ready(Ok::<_, Infallible>(answer(429, &[("retry-after", "5")])))
    }));
    assert!(mail.clone().oneshot(Request::new(1)).await.is_ok());
    assert!(mail.clone().oneshot(Request::new(1)).await.is_err());
    assert!(mail.oneshot(Request::new(2)).await.is_ok());
}

/// A reader of one's own may say anything.
#[tokio::test(start_paused = true)]
async fn a_wait_without_end_is_obeyed_for_as_long_as_is_allowed() {
    #[derive(Clone)]
    struct Never;
    impl ReadsLimit<u32> for Never {
        fn wait(&self, _: &u32) -> Option<Duration> {
            Some(Duration::MAX)
        }
    }
    for at_most in [secs(60), Duration::MAX] {
        let policy = per_second(100).obey(at_most).build().unwrap();
        let mail = RateLimitLayer::with_limits(policy, Never).layer(peer());
        mail.clone().oneshot(1).await.unwrap();
        let error = mail.oneshot(1).await.unwrap_err();
        assert!(retry_after(&error) >= at_most.min(secs(86_400 * 366 * 290)));
    }
}

#[test]
fn a_date_is_read_by_the_clock_that_was_given() {
    let past = answer(429, &[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]);
    assert_eq!(HttpLimits::default().wait(&past), Some(Duration::ZERO));
}
