//! Customers: they order at the gateway, and look at what becomes of it.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mamparo_core::{BoxError, clock};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::day::PATIENCE;

/// States in which an order stays.
const ENDS: [&str; 2] = ["CONFIRMED", "CANCELLED"];

/// Between two looks at an order.
const LOOK: Duration = Duration::from_millis(100);

/// As often as a customer tries again whose order was not answered.
const TRIES: u32 = 100;

/// Everybody who orders.
#[derive(Clone)]
pub(super) struct Customers {
    client: reqwest::Client,
    gateway: String,
}

/// What a customer is answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<u64>,
    pub(super) is_problem: bool,
    pub(super) took: Duration,
    pub(super) body: Value,
}

impl Answer {
    /// The order's id, if there is one.
    pub(super) fn order(&self) -> Option<String> {
        self.body["id"].as_str().map(str::to_owned)
    }

    /// Whether it says "not now" as it should: why, when to come back, and before the customer has gone.
    pub(super) fn is_not_now(&self, within: Duration) -> bool {
        self.status == 503 && self.retry_after.is_some() && self.is_problem && self.took < within
    }
}

/// Answers, by status.
pub(super) struct Statuses<'a>(pub(super) &'a [Answer]);

impl Display for Statuses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counted = BTreeMap::<u16, usize>::new();
        for answer in self.0 {
            *counted.entry(answer.status).or_default() += 1;
        }
        let counted = counted
            .iter()
            .map(|(status, count)| format!("{count} × {status}"));
        f.write_str(&counted.collect::<Vec<_>>().join(", "))
    }
}

impl Customers {
    pub(super) fn new(gateway: String) -> Self {
        let client = reqwest::Client::new();
        Self { client, gateway }
    }

    /// A customer whom nobody has seen before.
    pub(super) fn somebody() -> String {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        format!("customer-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
    }

    /// One order, asked for once.
    pub(super) async fn order(&self, customer: &str, product: &str) -> Result<Answer, BoxError> {
        let body = json!({ "customer": customer, "product": product, "quantity": 1 });
        let request = self.client.post(format!("{}/orders", self.gateway));
        let request = request
            .header("content-type", "application/json")
            .header("idempotency-key", format!("\"{customer}\""))
            .body(body.to_string());
        self.ask(customer, request).await
    }

    /// So many orders at once, of as many customers.
    pub(super) async fn crowd(&self, count: usize) -> Result<Vec<Answer>, BoxError> {
        let mut asking = JoinSet::new();
        for _ in 0..count {
            let (all, customer) = (self.clone(), Self::somebody());
            asking.spawn(async move { all.order(&customer, "book").await });
        }
        asking.join_all().await.into_iter().collect()
    }

    /// One order; a customer who is not answered, or told to come back, tries again with the same key.
    pub(super) async fn insist(&self, customer: &str) -> Result<Answer, BoxError> {
        let mut last = self.order(customer, "book").await;
        for _ in 0..TRIES {
            match &last {
                // 409: who tried before may still be at it.
                Ok(answer) if answer.status < 500 && answer.status != 409 => break,
                _ => sleep(3 * LOOK).await,
            }
            last = self.order(customer, "book").await;
        }
        last
    }

    /// Looks at a list, as one and the same client.
    pub(super) async fn ask_as(&self, client: &str) -> Result<Answer, BoxError> {
        let url = format!("{}/orders?customer={client}", self.gateway);
        self.ask(client, self.client.get(url)).await
    }

    pub(super) async fn get(&self, path: &str) -> Result<Answer, BoxError> {
        let request = self.client.get(format!("{}{path}", self.gateway));
        self.ask(&Self::somebody(), request).await
    }

    pub(super) async fn cancel(&self, order: &str) -> Result<Answer, BoxError> {
        let request = self
            .client
            .delete(format!("{}/orders/{order}", self.gateway));
        self.ask(&Self::somebody(), request).await
    }

    /// Says in which state an order is.
    pub(super) async fn state(&self, order: &str) -> Result<String, BoxError> {
        let answer = self.get(&format!("/orders/{order}")).await?;
        Ok(answer.body["state"].as_str().unwrap_or("?").to_owned())
    }

    /// Waits until all orders are confirmed or cancelled; says how many are in each state, then or when the time is over.
    pub(super) async fn outcome(&self, answers: &[Answer]) -> Result<String, BoxError> {
        let orders: Vec<String> = answers.iter().filter_map(Answer::order).collect();
        let begun = clock::now();
        loop {
            let mut states = BTreeMap::<String, usize>::new();
            for order in &orders {
                *states.entry(self.state(order).await?).or_default() += 1;
            }
            let ended = states.keys().all(|state| ENDS.contains(&&**state));
            if ended || begun.elapsed() > PATIENCE {
                let said = states
                    .iter()
                    .map(|(state, count)| format!("{count} {state}"));
                return Ok(said.collect::<Vec<_>>().join(", "));
            }
            sleep(LOOK).await;
        }
    }

    async fn ask(
        &self,
        customer: &str,
        request: reqwest::RequestBuilder,
    ) -> Result<Answer, BoxError> {
        let begun = clock::now();
        let answer = request.header("x-client", customer).send().await?;
        let header = |name| {
            answer
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let retry_after = header("retry-after").and_then(|value| value.parse().ok());
        let is_problem = header("content-type") == Some("application/problem+json");
        let status = answer.status().as_u16();
        let body = serde_json::from_slice(&answer.bytes().await?).unwrap_or_default();
        Ok(Answer {
            status,
            retry_after,
            is_problem,
            took: begun.elapsed(),
            body,
        })
    }
}
