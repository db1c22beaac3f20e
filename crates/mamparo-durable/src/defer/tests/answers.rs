use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use mamparo_testkit::body::{Frames, ScriptedBody};
use tower::{Service as _, ServiceExt as _};

use super::support::{Answer, Desk, answer, cancelled, charge, payment};
use crate::defer::DeferBody;
use crate::web::MAX_ANSWER_BYTES;

async fn answered(
    desk: &Desk,
    request: Request<ScriptedBody>,
) -> Response<DeferBody<ScriptedBody>> {
    let outcome = desk.call(request).await.unwrap();
    outcome.answered().expect("an answer")
}

fn frames(frames: Frames) -> Answer {
    Ok(Response::new(ScriptedBody::new(frames)))
}

#[tokio::test(start_paused = true)]
async fn any_other_answer_is_the_callers_as_it_came() {
    let large = Bytes::from(vec![b' '; MAX_ANSWER_BYTES * 3]);
    let split = Frames::new()
        .data(large.slice(..MAX_ANSWER_BYTES))
        .data(large.slice(MAX_ANSWER_BYTES..));
    let script = [
        answer(201, "done"),
        answer(422, "never"),
        answer(503, "down"),
        frames(split.trailer("x-sum", "1")),
        answer(200, ""),
    ];
    let desk = Desk::new(payment(), script);
    for (status, body) in [(201, "done"), (422, "never"), (503, "down")] {
        let answer = answered(&desk, charge()).await;
        assert_eq!(answer.status(), status);
        assert_eq!(answer.body().size_hint().exact(), Some(body.len() as u64));
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), body);
    }
    let answer = answered(&desk, charge()).await;
    assert_eq!(answer.body().size_hint().lower(), large.len() as u64);
    let whole = answer.into_body().collect().await.unwrap();
    assert_eq!(whole.trailers().unwrap()["x-sum"], "1");
    assert_eq!(whole.to_bytes(), large);
    assert!(answered(&desk, charge()).await.body().is_end_stream());
    let status = desk.engine.status().await.unwrap();
    assert!(status.census.counts.is_empty(), "nothing is stored");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_broke_off_breaks_off_for_its_caller_too() {
    let desk = Desk::new(
        payment(),
        [frames(Frames::new().data("half").error("reset"))],
    );
    let mut body = answered(&desk, charge()).await.into_body();
    assert!(!body.is_end_stream());
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "half"
    );
    assert!(!body.is_end_stream(), "its error is still to come");
    assert_eq!(
        body.frame().await.unwrap().unwrap_err().to_string(),
        "reset"
    );
    assert!(body.frame().await.is_none());
}

/// Nobody would read what it answers later.
#[tokio::test(start_paused = true)]
async fn a_request_that_only_asks_passes_untouched() {
    let desk = Desk::new(payment(), [answer(409, "")]);
    let mut request = charge();
    *request.method_mut() = Method::GET;
    assert_eq!(answered(&desk, request).await.status(), 409);
    assert_eq!(desk.provider.keys(), [""; 0]);
}

/// There is no later attempt: the last answer is the answer.
#[tokio::test(start_paused = true)]
async fn the_last_attempts_refusal_is_its_callers() {
    let desk = Desk::attempting(1, payment(), [cancelled()]);
    let answer = answered(&desk, charge()).await;
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, r#"{"status":"CANCELLED"}"#);
}

/// As long as a caller's body is still coming, no place of the stack is taken.
#[tokio::test(start_paused = true)]
async fn the_body_is_read_before_the_stack_is_asked() {
    let desk = Desk::new(payment(), []);
    let mut service = desk.service();
    let body = ScriptedBody::new(
        Frames::new()
            .wait(std::time::Duration::from_secs(5))
            .data("5 EUR"),
    );
    let call = service.ready().await.unwrap().call(charge().map(|_| body));
    let call = tokio::spawn(call);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(desk.provider.sent().is_empty());
    call.await.unwrap().unwrap().answered().unwrap();
    assert_eq!(desk.provider.sent()[0].body, "5 EUR");
}
