//! Where a handler may panic, and what becomes of it.

use std::convert::Infallible;
use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use mamparo_core::BoxError;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::*;

type Asked = Request<()>;

fn server<F, B>(
    handler: impl Fn(Asked) -> F + Clone,
) -> impl Service<Asked, Response = Response<CatchPanicBody<B>>, Error = BoxError>
where
    F: Future<Output = Result<Response<B>, Infallible>>,
{
    CatchPanicLayer::new().layer(service_fn(handler))
}

#[tokio::test]
async fn a_panic_is_an_error_whenever_it_comes() {
    let at_once = server(
        |_| -> std::future::Ready<Result<Response<String>, Infallible>> {
            panic!("in call");
        },
    );
    let error = at_once.oneshot(Asked::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "the handler panicked: in call");

    let later = server(async |_| -> Result<Response<String>, Infallible> {
        tokio::task::yield_now().await;
        panic!("in a {}", "poll");
    });
    let error = later.oneshot(Asked::default()).await.unwrap_err();
    let panicked = error.downcast_ref::<Panicked>().unwrap();
    assert_eq!(panicked.to_string(), "the handler panicked: in a poll");

    let odd = server(async |_| -> Result<Response<String>, Infallible> {
        std::panic::panic_any(7);
    });
    let error = odd.oneshot(Asked::default()).await.unwrap_err();
    assert!(error.to_string().ends_with("a panic without text"));
}

/// What it held is given back at once, and not when the caller lets go of the future.
#[tokio::test]
async fn what_a_handler_held_is_dropped_with_its_panic() {
    let held = Arc::new(());
    let kept = Arc::clone(&held);
    let mut server = server(move |_| {
        let own = Arc::clone(&kept);
        async move {
            tokio::task::yield_now().await;
            assert!(Arc::strong_count(&own) == 0, "on purpose");
            Ok::<_, Infallible>(Response::new(String::new()))
        }
    });
    let mut call = Box::pin(server.call(Asked::default()));
    assert!(call.as_mut().await.is_err());
    assert_eq!(Arc::strong_count(&held), 2, "the server's own");
    drop(call);
}

#[tokio::test]
async fn a_handler_that_answers_and_one_that_fails_are_left_alone() {
    let fine = server(|_| ready(Ok(Response::new("fine".to_owned()))));
    let answer = fine.oneshot(Asked::default()).await.unwrap();
    assert_eq!(answer.body().size_hint().exact(), Some(4));
    assert_eq!(
        answer.into_body().collect().await.unwrap().to_bytes(),
        "fine"
    );
    let failing = service_fn(async |_: Asked| Err::<Response<String>, _>(BoxError::from("no")));
    let failing = CatchPanicLayer::new().layer(failing);
    let error = failing.oneshot(Asked::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "no");
    let waiting = server(|_| pending::<Result<Response<String>, Infallible>>());
    let call = waiting.oneshot(Asked::default());
    assert!(futures(call).await.is_none());
}

/// What it is after one poll.
async fn futures<F: Future>(future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    std::future::poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

struct Exploding(u8);

impl Body for Exploding {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        assert!(self.0 > 0, "in the body");
        self.0 -= 1;
        Poll::Ready(Some(Ok(Frame::data("frame".into()))))
    }
}

#[tokio::test]
async fn a_panic_in_a_body_ends_it_with_an_error() {
    let server = server(|_| ready(Ok(Response::new(Exploding(1)))));
    let mut body = server.oneshot(Asked::default()).await.unwrap().into_body();
    assert!(body.frame().await.unwrap().is_ok() && !body.is_end_stream());
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the handler panicked: in the body");
    assert!(body.is_end_stream() && body.frame().await.is_none());
}
