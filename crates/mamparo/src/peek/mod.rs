//! Looks at the first frame of a gRPC answer, for servers that say late that they failed.
//!
//! A head without a status commits a gRPC call (gRFC A6): whatever its trailers say is the caller's, and no retry sees it. A
//! server that fails should therefore answer with its status in the head, "Trailers-Only"; but some send an empty
//! head first, and then trailers that say `UNAVAILABLE`. Around such a server this layer waits for the first frame, and
//! shows trailers that come before any data as a status in the head. Then retry, hedge and breaker judge it as what it is.
//!
//! - A head is held back only while another attempt may follow: not that of a method that is sent once, nor of a last attempt.
//!   It is held back for [`longest`](PeekLayer::longest) at most, and then commits the call as ever.
//! - The body is the same with this layer and without it, frame by frame, trailers included; nothing that has data is touched.
//!
//! It stands inside the owner of resends and outside of all else: next to [`RetryLayer`](crate::retry::RetryLayer).
//!
//! # States
//!
//! - *calling*: the head is not there;
//! - *peeking*: the head is there and held back, the first frame is not.
//!
//! # When not
//!
//! Not around servers that say at once what they know, which are most: a streaming call's head is late by its first message, and
//! that of a call in both directions, whose caller waits for the head before it says more, by all of [`longest`](PeekLayer::longest).
//!
//! ```
//! use bytes::Bytes;
//! use http::{HeaderMap, Request, Response};
//! use http_body_util::{BodyExt, Empty};
//! use mamparo::peek::PeekLayer;
//! use mamparo::replay::ReplayBody;
//! use mamparo::retry::{Ending, RetryLayer, RetryPolicy};
//! use mamparo_core::{BoxError, CallContext};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let service = ServiceBuilder::new()
//!     .layer(RetryLayer::grpc(RetryPolicy::default()))
//!     .layer(PeekLayer::new())
//!     .service_fn(async |_: Request<ReplayBody<Empty<Bytes>>>| {
//!         // Says in its trailers that it can't serve now, and the second time that it did.
//!         let status = if CallContext::current().attempt() == 1 { "14" } else { "0" };
//!         let mut trailers = HeaderMap::new();
//!         trailers.insert("grpc-status", status.parse()?);
//!         let body = Empty::<Bytes>::new().with_trailers(async { Some(Ok(trailers)) });
//!         let head = Response::builder().header("content-type", "application/grpc");
//!         Ok::<_, BoxError>(head.body(Box::pin(body))?)
//!     });
//! # tokio::time::pause();
//! let request = Request::post("http://catalog/shop.Catalog/Search").body(Empty::new())?;
//! let answer = service.oneshot(request).await?;
//! assert_eq!(Ending::of(&answer).map(Ending::attempts), Some(2));
//! # Ok(())
//! # }
//! ```

mod body;
mod future;
mod layer;
mod service;
mod state;

pub use body::PeekedBody;
pub use future::PeekFuture;
pub use layer::PeekLayer;
pub use service::Peek;

#[cfg(test)]
mod tests;
