//! What a server's callers are told of its limit.

use std::convert::Infallible;

use http::{HeaderMap, Request, Response};
use mamparo_core::http::{MAX_QUOTA_NAME_LEN, QuotaPolicy, hint};
use mamparo_core::{Dependency, Rejection};
use proptest::prelude::*;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::super::state::{Decision, Gcra};
use super::super::*;
use super::cast::*;

type Asked = Request<&'static str>;

async fn call(
    server: &mut impl Service<Asked, Response = Response<()>, Error = mamparo_core::BoxError>,
    key: &'static str,
) -> Result<HeaderMap, Rejection> {
    let answer = server.ready().await.unwrap().call(Request::new(key)).await;
    match answer {
        Ok(answer) => Ok(answer.headers().clone()),
        Err(error) => Err(rejection(&error).clone()),
    }
}

fn all(headers: &HeaderMap, name: &str) -> String {
    let lines = headers.get_all(name).iter();
    let lines: Vec<_> = lines.map(|line| line.to_str().unwrap()).collect();
    lines.join(", ")
}

async fn fine(_: Asked) -> Result<Response<()>, Infallible> {
    Ok(Response::new(()))
}

/// `RL-02`, `RL-05`: on every answer, whatever its status; and no refusal asks for less than until there is more.
#[tokio::test(start_paused = true)]
async fn every_answer_and_refusal_says_what_is_left_and_when_there_is_more() {
    let policy = RateLimitPolicy::per(secs(60), 6).burst(3).build().unwrap();
    let mut server = RateLimitLayer::server(policy).layer(service_fn(fine));
    for left in [2, 1, 0] {
        let headers = call(&mut server, "").await.unwrap();
        assert_eq!(
            all(&headers, "ratelimit-policy"),
            r#""rate-limit";q=6;w=60"#
        );
        let told = format!(r#""rate-limit";r={left};t=10"#);
        assert_eq!(all(&headers, "ratelimit"), told);
    }
    tokio::time::advance(millis(3_500)).await;
    let refused = call(&mut server, "").await.unwrap_err();
    assert_eq!(refused.retry_after(), Some(millis(6_500)));
    let mut headers = HeaderMap::new();
    refused.quota().unwrap().write(&mut headers);
    assert_eq!(all(&headers, "ratelimit"), r#""rate-limit";r=0;t=7"#);
    assert_eq!(
        hint::rate_limit(&headers),
        Some(secs(7)),
        "our own client reads it"
    );
    tokio::time::advance(secs(3_600)).await;
    let headers = call(&mut server, "").await.unwrap();
    assert_eq!(all(&headers, "ratelimit"), r#""rate-limit";r=2;t=10"#);
}

#[tokio::test(start_paused = true)]
async fn each_key_is_told_of_its_own_limit() {
    let policy = RateLimitPolicy::per(secs(60), 2).build().unwrap();
    let layer = RateLimitLayer::server(policy).told_as(policy.quota("per-client").unwrap());
    let mut server = layer
        .per_key(|asked: &Asked| Some(*asked.body()))
        .layer(service_fn(fine));
    for (key, left) in [("a", 1), ("a", 0), ("b", 1)] {
        let headers = call(&mut server, key).await.unwrap();
        let told = format!(r#""per-client";r={left};t=30"#);
        assert_eq!(all(&headers, "ratelimit"), told, "{key}");
    }
    let refused = call(&mut server, "a").await.unwrap_err();
    assert_eq!(refused.quota().unwrap().name(), "per-client");
}

/// `RV-02`, `RV-03`: each limit is an item of its own, on lines of their own.
#[tokio::test(start_paused = true)]
async fn several_limits_are_told_one_beside_the_other() {
    let burst = RateLimitPolicy::per(secs(60), 100).build().unwrap();
    let daily = RateLimitPolicy::per(secs(86_400), 1_000).build().unwrap();
    let named = |policy: RateLimitPolicy, name| {
        let quota = policy.quota(name).unwrap().with_legacy();
        RateLimitLayer::server(policy).told_as(quota)
    };
    let inner = named(burst, "burst").layer(service_fn(fine));
    let mut server = named(daily, "daily").layer(inner);
    let headers = call(&mut server, "").await.unwrap();
    let policies = r#""burst";q=100;w=60, "daily";q=1000;w=86400"#;
    assert_eq!(all(&headers, "ratelimit-policy"), policies);
    let lefts = r#""burst";r=99;t=1, "daily";r=999;t=87"#;
    assert_eq!(all(&headers, "ratelimit"), lefts);
    assert_eq!(
        all(&headers, "x-ratelimit-limit"),
        "100",
        "of which less is left"
    );
    assert_eq!(all(&headers, "x-ratelimit-remaining"), "99");
}

#[tokio::test(start_paused = true)]
async fn the_legacy_names_are_written_when_asked_for_and_nothing_when_told_so() {
    let policy = RateLimitPolicy::per(secs(60), 2).build().unwrap();
    let quota = policy.quota("a").unwrap();
    let fields = async |told: Option<QuotaPolicy>| {
        let mut server = RateLimitLayer::server(policy)
            .told_as(told)
            .layer(service_fn(fine));
        let headers = call(&mut server, "").await.unwrap();
        let mut names: Vec<_> = headers
            .keys()
            .map(|name| name.as_str().to_owned())
            .collect();
        names.sort_unstable();
        names.join(" ")
    };
    let legacy = "x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset";
    let draft = "ratelimit ratelimit-policy";
    assert_eq!(fields(Some(quota.clone())).await, draft);
    assert_eq!(
        fields(Some(quota.clone().with_legacy())).await,
        format!("{draft} {legacy}")
    );
    assert_eq!(fields(Some(quota.legacy_only())).await, legacy);
    assert_eq!(fields(None).await, "");
}

/// gRPC has no such words, and they must not stand in trailers.
#[tokio::test(start_paused = true)]
async fn answers_of_grpcs_are_left_alone() {
    let policy = RateLimitPolicy::per(secs(60), 2).build().unwrap();
    let grpc = async |_: Asked| {
        let answer = Response::builder().header("content-type", "application/grpc");
        Ok::<_, Infallible>(answer.body(()).unwrap())
    };
    let mut server = RateLimitLayer::server(policy).layer(service_fn(grpc));
    let headers = call(&mut server, "").await.unwrap();
    assert_eq!(headers.len(), 1);
}

/// What our own reader makes of the forms of the draft, and of those before it: `RV-01` to `RV-08`.
#[test]
fn the_forms_of_the_draft_are_read_and_those_before_it_are_not() {
    let read = |lines: &str| {
        let mut headers = HeaderMap::new();
        for line in lines.split('|') {
            let (name, value) = line.split_once(": ").unwrap();
            let name: http::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        hint::rate_limit(&headers)
    };
    let before = "ratelimit-remaining: 0|ratelimit-reset: 7|ratelimit-";
    let sloppy = r#"ratelimit: "peruser";r=0;t=5;pk=:sdfjLJUOUH==:"#;
    let two = r#"ratelimit-policy: "burst";q=100;w=60,"daily";q=1000;w=86400"#;
    let cases = [
        (
            "RV-01",
            r#"ratelimit: "default";r=50;t=30"#.to_owned(),
            None,
        ),
        (
            "RV-01",
            r#"ratelimit: "default";r=0;t=30"#.to_owned(),
            Some(30),
        ),
        ("RV-02", two.to_owned(), None),
        (
            "RV-03",
            r#"ratelimit: "a";r=0;t=3|ratelimit: "b";r=0;t=9"#.to_owned(),
            Some(9),
        ),
        ("RV-05", "ratelimit: default;r=0;t=30".to_owned(), None),
        ("RV-07", sloppy.to_owned(), Some(5)),
        ("RV-08", format!("{before}limit: 10, 10;w=1, 50;w=60"), None),
        ("RV-08", format!("{before}policy: 100;w=10"), None),
        (
            "RV-08",
            "ratelimit: limit=10, remaining=0, reset=7".to_owned(),
            None,
        ),
        (
            "XR-V6",
            "x-ratelimit-remaining: 0|x-ratelimit-reset: soon".to_owned(),
            None,
        ),
    ];
    for (id, lines, wait) in cases {
        assert_eq!(read(&lines), wait.map(secs), "{id}: {lines:?}");
    }
}

#[test]
fn a_name_that_a_structured_field_or_json_would_have_to_escape_is_refused() {
    let long = "a".repeat(MAX_QUOTA_NAME_LEN + 1);
    for name in ["", "two words", "a\"b", "ñ", "a\r\nb", &long] {
        let refused = QuotaPolicy::new(name, 1, secs(1)).unwrap_err();
        assert_eq!(refused.setting(), "name", "{name:?}");
    }
}

#[test]
fn a_window_of_no_whole_seconds_is_told_as_one_and_no_more_than_passes() {
    for (count, window, told) in [
        (10, millis(100), r#""a";q=100;w=1"#),
        (10, millis(1_500), r#""a";q=13;w=2"#),
        (10, millis(3_000), r#""a";q=10;w=3"#),
    ] {
        let mut headers = HeaderMap::new();
        let policy = QuotaPolicy::new("a", count, window).unwrap();
        policy.at(0, None).write(&mut headers);
        assert_eq!(all(&headers, "ratelimit-policy"), told);
        assert_eq!(all(&headers, "ratelimit"), r#""a";r=0"#);
    }
}

#[test]
fn a_rejection_of_a_client_says_nothing_of_a_quota() {
    let rejection = error::limited(Dependency::named("mail"), secs(1));
    assert!(rejection.quota().is_none());
}

proptest! {
    /// What is said to be left passes at once, and no more; and one more after what is said.
    #[test]
    fn as_much_passes_as_is_said(
        count in 1..1_000_u32,
        burst in 1..1_000_u32,
        period in 1..100_000_u64,
        debt in 0..u64::MAX / 4,
        now in 0..u64::MAX / 8,
    ) {
        let gcra = Gcra::new(count, millis(period), burst);
        let full_at = debt % (gcra.charge(burst) * 2);
        let (left, more_in) = gcra.left(full_at, now % 1_000_000_000);
        let now = now % 1_000_000_000;
        let passes = |now, cost| matches!(gcra.decide(full_at, now, cost), Decision::Pass { .. });
        prop_assert!(passes(now, left as u32) || left == 0);
        prop_assert!(!passes(now, left as u32 + 1));
        match more_in {
            None => prop_assert_eq!(left, u64::from(burst)),
            Some(wait) => {
                prop_assert!(passes(now + wait, left as u32 + 1));
                prop_assert!(!passes(now + wait - 1, left as u32 + 1));
            }
        }
    }
}
