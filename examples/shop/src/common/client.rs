//! Asking another service, by its policy.

use std::sync::Arc;

use http::{Method, Request, Response};
use mamparo::client::ReqwestClient;
use mamparo::policy::Policies;
use mamparo::problem::Problem;
use mamparo_core::BoxError;
use mamparo_core::http::Http;
use mamparo_telemetry::{AttemptLayer, Metrics, OperationLayer};
use serde::de::DeserializeOwned;
use tower::ServiceExt as _;

type Client = ReqwestClient<OperationLayer<Http>, AttemptLayer>;

/// A dependency: where it is, and how it is asked.
#[derive(Clone)]
pub(crate) struct Dependency {
    name: &'static str,
    url: String,
    client: Client,
}

impl Dependency {
    /// Takes its policy, with all metrics and spans.
    pub(crate) fn open(policies: &Policies, name: &'static str) -> Result<Self, BoxError> {
        let policy = policies.dependency(name)?;
        let metrics = Metrics::new().watch(policies.clone());
        let stack = policy
            .http()?
            .observer(Arc::new(metrics))
            .telemetry(OperationLayer::http(name), AttemptLayer::http(name));
        Ok(Self {
            name,
            url: policy.url().unwrap_or_default().to_owned(),
            client: mamparo::client::reqwest(reqwest::Client::builder(), &stack)?,
        })
    }

    /// Sends a request to a path of it; the answer may be one of an error.
    pub(crate) async fn send<B>(
        &self,
        request: Request<B>,
    ) -> Result<Response<reqwest::Body>, BoxError>
    where
        B: Into<reqwest::Body>,
    {
        let (mut head, body) = request.into_parts();
        head.uri = format!("{}{}", self.url, head.uri).parse()?;
        let request = Request::from_parts(head, body.into());
        let answer = self.client.clone().oneshot(request).await?;
        Ok(answer.map(reqwest::Body::wrap))
    }

    /// Gets a JSON document; a 404 is none, and what the dependency doesn't do is a problem that names it.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Problem> {
        let request = Request::builder().method(Method::GET).uri(path).body("");
        let answer = self.send(request.map_err(BoxError::from)?).await?;
        if answer.status() == 404 {
            return Ok(None);
        }
        let answer = Problem::check(self.name, answer)?;
        let bytes = reqwest::Response::from(answer).bytes().await;
        let bytes = bytes.map_err(BoxError::from)?;
        let document = serde_json::from_slice(&bytes).map_err(BoxError::from)?;
        Ok(Some(document))
    }
}
