//! Clients behind the recommended stack, with their telemetry.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::connect::HttpConnector;
use mamparo::attempt_timeout::AttemptPolicy;
use mamparo::breaker::BreakerPolicy;
use mamparo::client::{HyperClient, ReqwestClient, TonicClient};
use mamparo::deadline::DeadlinePolicy;
use mamparo::fallback::{self, FallbackLayer};
use mamparo::retry::RetryPolicy;
use mamparo::stack::Stack;
use mamparo_core::grpc::Grpc;
use mamparo_core::http::{Http, IDEMPOTENCY_KEY};
use mamparo_core::{BoxError, Dependency, InvalidSetting};
use mamparo_telemetry::{AttemptLayer, OperationLayer};
use tonic::transport::{Channel, Endpoint};
use tower::layer::util::Identity;
use tower::{Service, ServiceExt};

use crate::telemetry::{Pipeline, RpcAttempts, RpcOperations};

/// No answer here is longer.
const MAX_ANSWER: usize = 64 << 10;

pub(super) type Observed<F = Identity> = Stack<OperationLayer<Http>, AttemptLayer<Http>, F>;
pub(super) type Reqwest = ReqwestClient<OperationLayer<Http>, AttemptLayer<Http>>;
pub(super) type Hyper =
    HyperClient<HttpConnector, Full<Bytes>, OperationLayer<Http>, AttemptLayer<Http>>;

pub(super) type RpcStack = Stack<RpcOperations, RpcAttempts, Identity, Grpc>;
pub(super) type Tonic = TonicClient<Channel, RpcOperations, RpcAttempts>;

/// A fallback that always answers the same.
pub(super) type Instead = FallbackLayer<Http, fallback::Value<Response<Full<Bytes>>>>;

type HyperInstead =
    HyperClient<HttpConnector, Full<Bytes>, OperationLayer<Http>, AttemptLayer<Http>, Instead>;

/// The stack of one dependency: its limits, and telemetry.
pub(super) fn stack(
    telemetry: &Pipeline,
    dependency: &str,
    deadline: Duration,
    attempt: Duration,
) -> Result<Observed, InvalidSetting> {
    let dependency = Dependency::named(dependency);
    let retry = RetryPolicy::default();
    let observer = telemetry.observer(dependency, retry.budget());
    let (operations, attempts) = telemetry.layers(dependency);
    Ok(Stack::http(dependency)
        .deadline(DeadlinePolicy::within(deadline)?)
        .attempt(AttemptPolicy::builder().timeout(attempt).build()?)
        .retry(retry)
        // Of these servers most fail every first request, which would open it: it is shown apart.
        .breaker(BreakerPolicy::off())
        .observer(observer)
        .telemetry(operations, attempts))
}

/// The stack of a dependency that speaks gRPC.
pub(super) fn rpc_stack(
    telemetry: &Pipeline,
    dependency: &str,
    deadline: Duration,
    attempt: Duration,
) -> Result<RpcStack, InvalidSetting> {
    let dependency = Dependency::named(dependency);
    let retry = RetryPolicy::default();
    let observer = telemetry.observer(dependency, retry.budget());
    let (operations, attempts) = telemetry.rpc_layers(dependency);
    Ok(Stack::grpc(dependency)
        .deadline(DeadlinePolicy::within(deadline)?)
        .attempt(AttemptPolicy::builder().timeout(attempt).build()?)
        .retry(retry)
        .observer(observer)
        .telemetry(operations, attempts))
}

/// Stands it on tonic's channel.
pub(super) fn via_tonic(stack: &RpcStack, origin: Uri) -> Tonic {
    mamparo::client::tonic(Endpoint::from(origin).connect_lazy(), stack)
}

/// Stands the stack on reqwest. Everything here is on loopback, where no proxy belongs.
pub(super) fn via_reqwest(stack: &Observed) -> Result<Reqwest, reqwest::Error> {
    mamparo::client::reqwest(reqwest::Client::builder().no_proxy(), stack)
}

/// Stands the stack on hyper-util's pooled client.
pub(super) fn via_hyper(stack: &Observed) -> Hyper {
    mamparo::client::hyper(HttpConnector::new(), stack)
}

/// The same, of a stack that has a fallback.
pub(super) fn via_fallback(stack: &Observed<Instead>) -> HyperInstead {
    mamparo::client::hyper(HttpConnector::new(), stack)
}

/// Makes a request without a body; a key makes it safe to send again.
pub(super) fn request(
    method: Method,
    url: &str,
    key: Option<&str>,
) -> Result<Request<Full<Bytes>>, BoxError> {
    let mut request = Request::new(Full::default());
    *request.method_mut() = method;
    *request.uri_mut() = url.parse::<Uri>()?;
    if let Some(key) = key {
        request.headers_mut().insert(IDEMPOTENCY_KEY, key.parse()?);
    }
    Ok(request)
}

/// Sends a request, and takes its answer in whole.
pub(super) async fn send<S, B>(
    client: S,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (head, body) = client.oneshot(request).await?.into_parts();
    let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}
