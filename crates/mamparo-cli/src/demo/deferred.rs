//! A bank that takes no transfers for now: the wait is a row in SQLite, and outlives the engine.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::Full;
use mamparo_core::BoxError;
use mamparo_core::clock::{self, Instant};
use mamparo_core::http::IDEMPOTENCY_KEY;
use mamparo_durable::defer::{DeferLayer, DeferPolicy};
use mamparo_durable::engine::Engine;
use mamparo_durable::machine::{State, TransactionId};
use mamparo_durable::policy::{Policies, Policy, Wait};
use mamparo_durable::web::Judge;
use mamparo_sqlite::SqliteDurable;
use tower::{Layer, ServiceExt};

use super::cast::text;
use super::client::{request, stack, via_hyper};
use super::peer::{Peer, Reply};
use super::proof::Proof;
use crate::telemetry::Pipeline;
use crate::trace::millis;

/// As often the bank says "not now".
const CANCELLED: usize = 2;

/// The wait after that; of two hours, usually. It is spread by a tenth.
const WAIT: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(900);

/// Nothing here takes longer.
const LIMIT: Duration = Duration::from_secs(8);

/// Under which key the bank was asked, and when.
type Asked = Arc<Mutex<Vec<(String, Instant)>>>;

/// What came of the transfer.
#[derive(Debug)]
pub(super) struct Transfer {
    state: Option<State>,
    asked: Vec<(String, Instant)>,
}

/// Makes a transfer, and starts the engine anew while it waits.
pub(super) async fn transfer(telemetry: &Pipeline) -> Result<Transfer, BoxError> {
    let asked = Asked::default();
    let bank = bank(Arc::clone(&asked)).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("engine.db");
    let client = via_hyper(&stack(telemetry, "bank", LIMIT, LIMIT)?);

    let (engine, layer) = open(&file)?;
    let running = engine.run(layer.sender::<_, Full<Bytes>>(client.clone()));
    let order = request(Method::POST, &bank.url("/transfers"), None)?;
    let outcome = layer.layer(client.clone()).oneshot(order).await?;
    let id = outcome.deferred().map(|deferred| deferred.id.clone());
    running.stop().await?;
    drop((engine, layer));

    let (engine, layer) = open(&file)?;
    let running = engine.run(layer.sender::<_, Full<Bytes>>(client));
    let state = match id {
        Some(id) => tokio::time::timeout(LIMIT, over(&engine, &id))
            .await
            .ok()
            .transpose()?,
        None => None,
    };
    running.stop().await?;
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Transfer { state, asked })
}

async fn bank(asked: Asked) -> std::io::Result<Peer> {
    let script = move |head: &http::request::Parts| {
        let key = head
            .headers
            .get(IDEMPOTENCY_KEY)
            .and_then(|key| key.to_str().ok());
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push((key.unwrap_or_default().to_owned(), clock::now()));
        let state = if asked.len() > CANCELLED {
            "DONE"
        } else {
            "CANCELLED"
        };
        Reply::Answer(text(
            StatusCode::OK,
            format!("{{\"state\": \"{state}\"}}\n"),
        ))
    };
    Peer::start(script).await
}

fn open(file: &Path) -> Result<(Engine, DeferLayer), BoxError> {
    let wait = Wait::builder().base(WAIT).factor(1.0).build()?;
    let policies = Policies::new(Policy::builder().business(wait).build()?);
    let engine = Engine::builder(SqliteDurable::open(file)?.backend()).policies(policies);
    let engine = engine.build()?;
    let judge = Judge::builder()
        .field("state")
        .refused_values(["CANCELLED"]);
    let policy = DeferPolicy::builder("transfer")
        .judge(judge.build()?)
        .build()?;
    Ok((
        engine.clone(),
        DeferLayer::new(engine, policy).dependency("bank"),
    ))
}

/// Waits until a transaction is at its end.
async fn over(engine: &Engine, id: &TransactionId) -> Result<State, BoxError> {
    loop {
        let record = engine.load(id).await?.ok_or("the transfer is not stored")?;
        if record.progress.state.is_terminal() {
            return Ok(record.progress.state);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Transfer {
    pub(super) fn proof(&self) -> Proof {
        let waits = self.asked.windows(2).map(|pair| pair[1].1 - pair[0].1);
        let waited: Duration = waits.clone().sum();
        let keys: std::collections::HashSet<_> = self.asked.iter().map(|(key, _)| key).collect();
        let made = self.state == Some(State::Succeeded) && self.asked.len() == CANCELLED + 1;
        Proof {
            name: "deferred",
            holds: made && keys.len() == self.asked.len() && waits.min() >= Some(SHORTEST),
            says: if made {
                format!(
                    "a transfer, cancelled {CANCELLED} times, was done {} later by an engine that was started anew meanwhile",
                    millis(waited)
                )
            } else {
                format!(
                    "a transfer was asked for {} times, and is {:?}",
                    self.asked.len(),
                    self.state
                )
            },
        }
    }
}
