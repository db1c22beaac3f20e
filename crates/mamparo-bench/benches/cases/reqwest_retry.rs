//! reqwest-middleware with reqwest-retry, before a middleware that answers in the client's place.

use async_trait::async_trait;
use http::Extensions;
use mamparo_core::BoxError;
use reqwest::{Client, Method, Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use tower::Service;
use tower::util::service_fn;

/// Answers at once; no request reaches the client.
struct Answers;

#[async_trait]
impl Middleware for Answers {
    async fn handle(
        &self,
        _: Request,
        _: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        Ok(http::Response::new("").into())
    }
}

/// The middlewares alone.
pub(super) fn bare() -> Result<impl Service<()>, BoxError> {
    service(ClientBuilder::new(Client::new()))
}

/// Two resends at most, as the default of ours.
pub(super) fn retry() -> Result<impl Service<()>, BoxError> {
    let policy = ExponentialBackoff::builder().build_with_max_retries(2);
    let retry = RetryTransientMiddleware::new_with_policy(policy);
    service(ClientBuilder::new(Client::new()).with(retry))
}

/// Sends copies of one request.
fn service(client: ClientBuilder) -> Result<impl Service<()>, BoxError> {
    let client = client.with(Answers).build();
    let request = Request::new(Method::GET, "http://catalog/".parse()?);
    Ok(service_fn(move |()| {
        let (client, request) = (client.clone(), request.try_clone());
        async move {
            let request = request.ok_or("a request without a body can be copied")?;
            client.execute(request).await.map_err(BoxError::from)
        }
    }))
}
