//! Requests with bodies, read side by side.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use mamparo_core::{BoxError, CallContext, Kind, NotResent, Resend, TransportError};
use mamparo_testkit::body::{Frames, ScriptedBody};
use tokio::sync::mpsc;
use tower::{Layer, ServiceExt, service_fn};

use super::cast::*;
use crate::hedge::{Ending, HedgeLayer};

fn put(body: ScriptedBody) -> Request<ScriptedBody> {
    Request::put("http://catalog/").body(body).unwrap()
}

/// What each attempt read of the request's body: all of it, or why not.
type Read = Result<Bytes, String>;

/// Sends to a peer that reads the body, then answers after so many milliseconds: the first, and all later ones.
async fn send(
    layer: HedgeLayer<mamparo_core::http::Http>,
    request: Request<ScriptedBody>,
    (first, later): (u64, u64),
) -> (Result<Response<ScriptedBody>, BoxError>, Vec<Read>) {
    let (told, mut reads) = mpsc::unbounded_channel();
    let peer = service_fn(move |wire: Wire| {
        let told = told.clone();
        async move {
            let number = CallContext::current().attempt();
            let read = wire.into_body().collect().await.map(|body| body.to_bytes());
            let text = |error: &BoxError| error.to_string();
            told.send(read.as_ref().map(Bytes::clone).map_err(text))?;
            // So say the adapters of clients: the caller's body is at fault.
            read.map_err(|error| TransportError::new(Kind::Client, Resend::Never, error))?;
            let wait = if number == 1 { first } else { later };
            tokio::time::sleep(wait as u32 * MS).await;
            Ok::<_, BoxError>(answer(200))
        }
    });
    let result = layer.layer(peer).oneshot(request).await;
    let mut all = Vec::new();
    while let Ok(read) = reads.try_recv() {
        all.push(read);
    }
    (result, all)
}

/// Row P-D7: one stream, never polled by two; each attempt gets all of it.
#[tokio::test(start_paused = true)]
async fn a_hedge_sends_the_same_body_while_it_is_still_uploaded() {
    let frames = Frames::new().data("he").wait(150 * MS).data("re");
    let request = put(ScriptedBody::new(frames));
    let (answer, reads) = send(hedge(), request, (10_000, 10)).await;
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
    assert_eq!(reads, [Ok(Bytes::from("here")), Ok(Bytes::from("here"))]);
}

/// Row P-D7: known to be too large, it is not hedged, and the reason is told.
#[tokio::test(start_paused = true)]
async fn a_body_too_large_to_keep_is_sent_once() {
    let heard = Heard::default();
    let policy = policy().max_body(3).build().unwrap();
    let layer = HedgeLayer::http(policy).observer(Arc::new(heard.clone()));
    let (answer, reads) = send(layer, put(ScriptedBody::new("four")), (500, 10)).await;
    assert!(Ending::of(&answer.unwrap()).is_none());
    assert_eq!(
        (reads.len(), heard.all()[0].as_str()),
        (1, "off: body_too_large")
    );
}

/// Row P-D7: it turns out too large while a hedge reads along: that one gives way.
#[tokio::test(start_paused = true)]
async fn a_body_that_outgrows_the_bound_does_not_disturb_the_original() {
    let heard = Heard::default();
    let policy = policy().max_body(6).build().unwrap();
    let layer = HedgeLayer::http(policy).observer(Arc::new(heard.clone()));
    let frames = Frames::new()
        .data("four")
        .wait(150 * MS)
        .data("more")
        .data("!");
    let request = put(ScriptedBody::new(frames).without_hints());
    let (answer, reads) = send(layer, request, (500, 10)).await;
    let ending = *Ending::of(&answer.unwrap()).unwrap();
    assert_eq!((ending.attempts(), ending.not_resent()), (2, None));
    assert!(reads.contains(&Ok(Bytes::from("fourmore!"))), "{reads:?}");
    assert_eq!(
        heard.all()[..2],
        ["sent 2 beside 1 after 100ms: slow", "2: ignored"]
    );
}

/// Row P-D7: it was too large before a hedge was due.
#[tokio::test(start_paused = true)]
async fn a_body_that_had_outgrown_the_bound_is_not_hedged() {
    let heard = Heard::default();
    let policy = policy().max_body(6).build().unwrap();
    let layer = HedgeLayer::http(policy).observer(Arc::new(heard.clone()));
    let frames = Frames::new().data("four").data("more");
    let request = put(ScriptedBody::new(frames).without_hints());
    let (answer, reads) = send(layer, request, (500, 10)).await;
    assert!(answer.is_ok() && reads.len() == 1);
    assert_eq!(
        heard.all()[0],
        format!("off: {}", NotResent::BodyTooLarge.as_str())
    );
}
