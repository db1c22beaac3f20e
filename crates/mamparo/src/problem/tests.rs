//! What is told of a problem, and how it is written.

use std::io;

use http::{Response, StatusCode};
use mamparo_core::grpc::Code;
use mamparo_core::{
    BoxError, CallContext, Deadline, Dependency, Ending, Kind, NotResent, Reason, Rejection,
    Resend, ResponseHead, RetryError, TransportError, clock,
};
use std::time::Duration;

use super::*;

fn header<'a, B>(answer: &'a Response<B>, name: &str) -> Option<&'a str> {
    answer.headers().get(name)?.to_str().ok()
}

/// The vectors PD of RFC 9457 that are the writer's: `PD-V1` to `PD-V5`.
#[test]
fn each_kind_of_refusal_has_its_type_its_status_and_its_members() {
    let own = |reason| Rejection::refused(reason, Dependency::UNNAMED).into();
    let open: BoxError = Rejection::refused(Reason::BreakerOpen, "psp".into())
        .with_retry_after(Duration::from_secs(30))
        .into();
    let draft = "https://iana.org/assignments/http-problem-types#";
    let ours = "urn:mamparo:problem:";
    let abnormal = Problem::new(ProblemType::ABNORMAL_USAGE_DETECTED);
    let vectors: [(&str, BoxError, u16, String, &str, bool); 5] = [
        (
            "PD-V1",
            own(Reason::BulkheadFull),
            503,
            format!("{draft}temporary-reduced-capacity"),
            r#","violated-policies":["bulkhead"]}"#,
            true,
        ),
        (
            "PD-V1",
            own(Reason::Overloaded),
            503,
            format!("{draft}temporary-reduced-capacity"),
            r#","violated-policies":["load-shed"]}"#,
            true,
        ),
        (
            "PD-V2",
            own(Reason::RateLimited),
            429,
            format!("{draft}quota-exceeded"),
            r#","violated-policies":["rate-limit"]}"#,
            true,
        ),
        (
            "PD-V3",
            abnormal.into(),
            429,
            format!("{draft}abnormal-usage-detected"),
            r#""status":429}"#,
            false,
        ),
        (
            "PD-V4",
            open,
            503,
            format!("{ours}dependency-unavailable"),
            r#","dependency":"psp"}"#,
            true,
        ),
    ];
    for (id, error, status, kind, end, waits) in vectors {
        let answer = Problem::from(error).into_response();
        assert_eq!(answer.status(), status, "{id}");
        let json = answer.body();
        assert!(
            json.starts_with(&format!(r#"{{"type":"{kind}","title":""#)),
            "{id}: {json}"
        );
        assert!(
            json.contains(&format!(r#","status":{status}"#)),
            "PD-V5 {id}: {json}"
        );
        assert!(json.ends_with(end), "{id}: {json}");
        assert_eq!(header(&answer, "retry-after").is_some(), waits, "{id}");
        assert_eq!(
            header(&answer, "content-type"),
            Some("application/problem+json")
        );
    }
}

/// `PD-V8`.
#[test]
fn what_is_told_is_escaped_and_the_cause_is_not_told() {
    let hostile = "\"\\ \n\u{1}\u{7f}\u{2028}ñ";
    let problem = Problem::blank(StatusCode::CONFLICT)
        .with_detail(hostile)
        .with_member("items", vec![hostile.to_owned(), "b".to_owned()])
        .with_member("count", 3)
        .with_dependency("a \"b\"")
        .because("the password is 1234");
    let escaped = r#""\"\\ \u000a\u0001\u007f\u2028ñ""#;
    assert_eq!(
        problem.json(),
        format!(
            concat!(
                r#"{{"type":"about:blank","title":"Conflict","status":409,"detail":{0},"#,
                r#""dependency":"a \"b\"","items":[{0},"b"],"count":3}}"#
            ),
            escaped
        )
    );
    assert!(!format!("{problem} {problem:?}").contains("1234"));
    let told = std::error::Error::source(&problem).unwrap().to_string();
    assert_eq!(told, "the password is 1234");
}

#[test]
fn members_are_bounded_and_those_of_the_standard_are_kept() {
    const NAMES: [&str; 20] = [
        "m00", "m01", "m02", "m03", "m04", "m05", "m06", "m07", "m08", "m09", "m10", "m11", "m12",
        "m13", "m14", "m15", "m16", "m17", "m18", "m19",
    ];
    let mut problem = Problem::blank(StatusCode::NOT_FOUND).with_member("status", 200);
    for name in NAMES {
        problem = problem.with_member(name, 1).with_member(name, 2);
    }
    let json = problem.json();
    assert!(
        json.contains(r#""m15":2}"#) && !json.contains("m16"),
        "{json}"
    );
    assert!(
        json.contains(r#""status":404"#) && !json.contains("200"),
        "{json}"
    );
}

#[test]
fn a_status_that_is_no_errors_is_told_as_500() {
    for status in [StatusCode::OK, StatusCode::FOUND, StatusCode::CONTINUE] {
        assert_eq!(Problem::blank(status).status(), 500);
    }
}

fn retried(head: Option<ResponseHead>, source: BoxError) -> BoxError {
    let ending = Ending::new(3, Some(NotResent::AttemptsExhausted), false);
    RetryError::new(Dependency::named("psp"), ending, head.map(Box::new), source).into()
}

/// What was not done in time, can't be reached, or is not asked now is 503; the rest 502. All of it has a name.
#[test]
fn an_error_of_a_call_names_the_dependency_and_when_it_may_be_there_again() {
    let cut = |reason| -> BoxError { Rejection::cut(reason, "psp".into()).into() };
    let transport = |kind| retried(None, TransportError::new(kind, Resend::Never, "?").into());
    let mut headers = http::HeaderMap::new();
    headers.insert("retry-after", "40".parse().unwrap());
    let head = ResponseHead::new(StatusCode::SERVICE_UNAVAILABLE, headers);
    let refused = TransportError::new(Kind::Connect, Resend::Always, io::Error::other("?"));
    let cases: [(BoxError, u16, Option<u64>, Code); 9] = [
        (
            cut(Reason::AttemptTimedOut),
            503,
            Some(1),
            Code::DeadlineExceeded,
        ),
        (
            cut(Reason::DeadlineExceeded),
            503,
            Some(1),
            Code::DeadlineExceeded,
        ),
        (
            cut(Reason::ConnectTimedOut),
            503,
            Some(1),
            Code::Unavailable,
        ),
        (
            retried(None, cut(Reason::BodyIdle)),
            503,
            Some(1),
            Code::DeadlineExceeded,
        ),
        (
            transport(Kind::Timeout),
            503,
            Some(1),
            Code::DeadlineExceeded,
        ),
        (transport(Kind::Connect), 503, Some(1), Code::Unavailable),
        (
            retried(Some(head), refused.into()),
            503,
            Some(40),
            Code::Unavailable,
        ),
        (transport(Kind::Reset), 502, None, Code::Unavailable),
        (retried(None, "?".into()), 502, None, Code::Unavailable),
    ];
    for (error, status, wait, code) in cases {
        let shown = format!("{error}: {:?}", std::error::Error::source(&*error));
        let problem = Problem::from(error);
        assert_eq!(
            (problem.status().as_u16(), problem.code()),
            (status, code),
            "{shown}"
        );
        assert_eq!(problem.dependency().as_str(), "psp", "{shown}");
        assert_eq!(
            problem.retry_after(),
            wait.map(Duration::from_secs),
            "{shown}"
        );
    }
    assert!(Problem::from(transport(Kind::Reset)).are_attempts_spent());
    assert_eq!(Problem::from(BoxError::from("a bug")).status(), 500);
}

/// A handler's call inherits the deadline of its request.
#[tokio::test(start_paused = true)]
async fn a_call_that_ended_with_the_requests_own_deadline_is_not_the_dependencys_fault() {
    let told = || {
        let cut: BoxError = Rejection::cut(Reason::DeadlineExceeded, "psp".into()).into();
        Problem::from(cut)
    };
    let deadline = Deadline::after(clock::now(), Duration::from_secs(1));
    let mut context = CallContext::EMPTY.with_deadline(deadline);
    assert_eq!(context.enter(told).status(), 503);
    tokio::time::advance(Duration::from_millis(960)).await;
    let problem = context.enter(told);
    assert_eq!(problem.status(), 504);
    assert_eq!(
        (problem.dependency().as_str(), problem.retry_after()),
        ("psp", None)
    );
}

/// `RV-09`, of a server that hands it on: `Retry-After` goes before `t`.
#[test]
fn an_answer_of_a_dependency_that_is_an_error_becomes_a_problem_that_names_it() {
    let answer = |status: u16| {
        let answer = Response::builder()
            .status(status)
            .header("retry-after", "3");
        answer
            .header("ratelimit", r#""a";r=0;t=60"#)
            .body(())
            .unwrap()
    };
    for (theirs, ours, wait) in [
        (429, 503, Some(3)),
        (503, 503, Some(3)),
        (500, 502, None),
        (504, 502, None),
        (404, 502, None),
    ] {
        let problem = Problem::check("psp", answer(theirs)).unwrap_err();
        assert_eq!(problem.status(), ours, "{theirs}");
        assert_eq!(
            problem.retry_after(),
            wait.map(Duration::from_secs),
            "{theirs}"
        );
        assert_eq!(problem.dependency().as_str(), "psp");
        assert!(!problem.are_attempts_spent());
    }
    for fine in [200, 204, 304] {
        assert!(Problem::check("psp", answer(fine)).is_ok());
    }
    let mut spent = answer(503);
    let ending = Ending::new(3, Some(NotResent::AttemptsExhausted), false);
    spent.extensions_mut().insert(ending);
    assert!(
        Problem::check("psp", spent)
            .unwrap_err()
            .are_attempts_spent()
    );
}

#[test]
fn the_docs_have_a_file_and_a_heading_for_each_of_our_types() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/problems");
    let story = include_str!("mod.rs");
    for kind in ProblemType::OURS {
        let (_, name) = kind.uri().rsplit_once(':').unwrap();
        assert!(
            docs.join(format!("{name}.md")).exists(),
            "docs/problems/{name}.md is missing"
        );
        assert!(
            story.contains(&format!("//! # {name}\n")),
            "problem/mod.rs has no heading {name}"
        );
    }
}
