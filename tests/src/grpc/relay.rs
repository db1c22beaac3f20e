//! A service that asks the next one, with no code for deadlines or traces.

use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};
use mamparo_testkit::grpc::{Echo, EchoClient, EchoReply, EchoRequest};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Bytes, StdError};
use tonic::{Request, Response, Status, Streaming};

/// Hands single answers and streams on, after a pause.
pub(super) struct Relay<T> {
    pub(super) next: EchoClient<T>,
    pub(super) pause: Duration,
}

#[tonic::async_trait]
impl<T> Echo for Relay<T>
where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::ResponseBody: tonic::codegen::Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as tonic::codegen::Body>::Error: Into<StdError> + Send,
    T::Future: Send,
{
    type CountStream = BoxStream<'static, Result<EchoReply, Status>>;
    type ChatStream = BoxStream<'static, Result<EchoReply, Status>>;

    async fn say(&self, request: Request<EchoRequest>) -> Result<Response<EchoReply>, Status> {
        tokio::time::sleep(self.pause).await;
        self.next.clone().say(request.into_inner()).await
    }

    async fn count(
        &self,
        request: Request<EchoRequest>,
    ) -> Result<Response<Self::CountStream>, Status> {
        let frames = self.next.clone().count(request.into_inner()).await?;
        Ok(Response::new(frames.into_inner().boxed()))
    }

    async fn collect(
        &self,
        _: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<EchoReply>, Status> {
        Err(Status::unimplemented("of no use here"))
    }

    async fn chat(
        &self,
        _: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Self::ChatStream>, Status> {
        Err(Status::unimplemented("of no use here"))
    }
}
