//! Shows a payment that its provider cancels for now: it waits as a row in SQLite, outlives a restart, and is made later, once. A policy
//! file says which answers mean that, and how long to wait.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use http::Request;
use mamparo::client::ReqwestClient;
use mamparo::policy::{Format, Policies as Files};
use mamparo_core::{BoxError, clock};
use mamparo_durable::defer::{DeferLayer, DeferPolicy, Deferrable};
use mamparo_durable::engine::{Engine, Running};
use mamparo_durable::machine::{State as Stands, TransactionId};
use mamparo_durable::policy::Policies;
use mamparo_sqlite::SqliteDurable;
use tower::{Layer, ServiceExt};

/// The wait is two hours, usually.
const POLICIES: &str = r#"
[dependency.psp.defer]
field = "status"
refused_values = ["CANCELLED"]
rejections = true
failures = true
wait = { base = "1500ms", factor = 1.0 }
"#;

/// As often as the provider says "not now".
const CANCELLED: usize = 2;

/// Nothing here takes longer.
const LIMIT: Duration = Duration::from_secs(12);

/// The keys under which the provider was asked, in order.
type Asked = Arc<Mutex<Vec<String>>>;

/// Takes no payments for a while, as it says with 200.
async fn charge(State(asked): State<Asked>, headers: HeaderMap) -> &'static str {
    let key = headers
        .get("idempotency-key")
        .and_then(|key| key.to_str().ok());
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    asked.push(key.unwrap_or_default().to_owned());
    if asked.len() <= CANCELLED {
        r#"{"status": "CANCELLED"}"#
    } else {
        r#"{"status": "PAID"}"#
    }
}

/// What a process of the shop has: the client, the layer around it, and the engine that runs.
struct Process {
    psp: ReqwestClient,
    layer: DeferLayer,
    engine: Engine,
    running: Running,
}

/// Starts one, on the store's file.
fn start(store: &Path) -> Result<Process, BoxError> {
    // `Files::load(["policies.toml"])` reads a file.
    let files = Files::loader().text("policies.toml", POLICIES, Format::Toml);
    let files = files.load()?;
    let file = files.dependency("psp")?;
    let engine = Engine::builder(SqliteDurable::open(store)?.backend())
        .policies(Policies::of_files(&files)?)
        .build()?;

    let policy = DeferPolicy::of_file(&file)?.build()?;
    let layer = DeferLayer::new(engine.clone(), policy).dependency("psp");
    let psp = mamparo::client::reqwest(reqwest::Client::builder().no_proxy(), &file.http()?)?;
    let running = engine.run(layer.sender::<_, reqwest::Body>(psp.clone()));
    Ok(Process {
        psp,
        layer,
        engine,
        running,
    })
}

async fn until_over(engine: &Engine, id: &TransactionId) -> Result<Stands, BoxError> {
    let over = async {
        loop {
            let record = engine.load(id).await?.ok_or("it is not stored")?;
            if record.progress.state.is_terminal() {
                return Ok::<_, BoxError>(record.progress.state);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, over).await?
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let asked = Asked::default();
    let routes = Router::new()
        .route("/charges", post(charge))
        .with_state(Arc::clone(&asked));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/charges", listener.local_addr()?);
    tokio::spawn(axum::serve(listener, routes).into_future());
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");

    // The first process: the provider cancels, so the payment becomes a row, and the customer is told so.
    let Process {
        psp,
        layer,
        engine,
        running,
    } = start(&file)?;
    let request = Request::post(url)
        .header("idempotency-key", "\"order-7\"")
        .header("content-type", "text/plain")
        .body(reqwest::Body::from("5 EUR"))?;
    let Deferrable::Deferred(deferred) = layer.layer(psp).oneshot(request).await? else {
        return Err("the provider cancels at first".into());
    };
    println!("deferred: {deferred}");

    // It ends, with a payment in hand.
    running.stop().await?;
    drop((layer, engine));
    println!("stopped: the payment is nowhere but in {}", file.display());
    tokio::time::sleep(Duration::from_millis(500)).await;

    // The next one finds it in the file.
    let began = clock::now();
    let Process {
        engine, running, ..
    } = start(&file)?;
    let state = until_over(&engine, &deferred.id).await?;
    println!(
        "{} {:.1?} after the start of another process:",
        state.as_str(),
        began.elapsed()
    );
    for event in engine.history(&deferred.id, 0, 100).await? {
        let reason = event.reason.as_ref().map_or("", |reason| reason.as_str());
        println!(
            "  {} attempt {} {:10} {} {reason}",
            event.at,
            event.attempt,
            event.to.as_str(),
            event.cause.as_str()
        );
    }
    running.stop().await?;

    // Attempt 1 had the order's key. Each attempt after a refusal has its own, so that a provider that honours keys takes it for a new one.
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    println!("the provider was asked under {}", asked.join(", "));
    assert_eq!(state, Stands::Succeeded);
    assert_eq!(
        asked,
        ["\"order-7\"", "\"psp:order-7#2\"", "\"psp:order-7#3\""]
    );
    Ok(())
}
