//! Plays one reply to one request.

use super::log::Exchange;
use super::reply::{Act, Content, Reply};
use super::wire::Order;
use crate::body::ScriptedBody;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use std::future::pending;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Reads the request, waits, then answers or breaks as the reply says.
pub(super) async fn play(
    reply: Reply,
    mut request: Request<Incoming>,
    exchange: Exchange,
) -> Result<Response<AnswerBody>, h2::Error> {
    while !reply.early
        && let Some(frame) = request.body_mut().frame().await
    {
        exchange.arrived(frame.map_err(|_| h2::Reason::CANCEL)?);
    }
    tokio::time::sleep(reply.delay).await;
    if let Some(key_header) = reply.commits {
        exchange.commit(key_header);
    }
    if reply.last {
        exchange.link.order(Order::Drain);
        tokio::task::yield_now().await; // the connection hears it before it gets the response
    }
    match reply.act {
        Act::Respond(content) => Ok(respond(content, exchange)),
        Act::Hang => pending().await,
        Act::RefuseStream => Err(h2::Reason::REFUSED_STREAM.into()),
        Act::End(order) => {
            exchange.link.order(order);
            pending().await
        }
    }
}

fn respond(content: Content, exchange: Exchange) -> Response<AnswerBody> {
    let mut body = ScriptedBody::new(content.frames);
    if content.streamed {
        body = body.without_hints();
    }
    let mut response = Response::new(box_body(body, exchange));
    *response.status_mut() = content.status;
    *response.headers_mut() = content.headers;
    response
}

/// Ties the exchange to the response's body: the handler is over when the body is.
pub(super) fn box_body<B>(body: B, exchange: Exchange) -> AnswerBody
where
    B: Body<Data = Bytes> + Send + 'static,
{
    AnswerBody {
        body: body
            .map_err(|_| h2::Reason::INTERNAL_ERROR.into())
            .boxed_unsync(),
        _exchange: exchange,
    }
}

/// A response's body, with the exchange that it ends.
#[derive(Debug)]
pub(super) struct AnswerBody {
    body: UnsyncBoxBody<Bytes, h2::Error>,
    _exchange: Exchange,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
