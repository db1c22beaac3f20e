//! Sends requests through the stack of their dependency.

use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderMap;
use mamparo::policy::Policies;
use mamparo_core::BoxError;
use mamparo_durable::backend::Request;
use mamparo_durable::machine::{Answer, Outcome};
use mamparo_durable::web::HttpSender;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use super::metrics::Told;
use super::policy::judge;
use super::trouble::Trouble;

type Sender = BoxCloneSyncService<Request, Option<Answer>, BoxError>;

/// A sender for each dependency.
#[derive(Clone, Debug)]
pub(super) struct Senders {
    by_dependency: Arc<HashMap<String, Sender>>,
}

impl Senders {
    pub(super) fn of(
        policies: &Policies,
        headers: &HeaderMap,
        told: &Told,
    ) -> Result<Self, Trouble> {
        let mut senders = HashMap::new();
        for (name, policy) in policies.iter() {
            // One that speaks gRPC is for another program that has the same files.
            let Ok(mut stack) = policy.http() else {
                continue;
            };
            if let Some(served) = &told.served {
                stack = stack.observer(Arc::new(served.metrics()));
            }
            let (operation, attempt) = told.layers(name);
            let stack = stack.telemetry(operation, attempt);
            let builder = reqwest::Client::builder().user_agent(crate::USER_AGENT);
            let client = mamparo::client::reqwest(builder, &stack)
                .map_err(|error| Trouble::away(error.to_string()))?;
            let sender = HttpSender::<_, reqwest::Body>::new(client, judge(policy)?)
                .headers(headers.clone());
            senders.insert(name.to_owned(), BoxCloneSyncService::new(sender));
        }
        Ok(Self {
            by_dependency: Arc::new(senders),
        })
    }

    /// Sends one. Without a policy it waits, as after a failure: a later policy may name it.
    pub(super) async fn send(self, request: Request) -> Result<Option<Answer>, BoxError> {
        let name = request.dependency.as_ref().map(|name| name.as_str());
        match name.and_then(|name| self.by_dependency.get(name)) {
            Some(sender) => sender.clone().oneshot(request).await,
            None => {
                let name = name.unwrap_or("without a name");
                let why = format!("no policy for HTTP is for the dependency {name}");
                let technical = request.answer(Outcome::Technical);
                Ok(Some(technical.with_reason(why.as_str())))
            }
        }
    }
}
