//! A provider that refuses each transaction's first attempts, and does what it was asked once for each key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;

/// What it saw and did.
#[derive(Clone, Debug, Default)]
pub(super) struct Provider(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    refuses: u32,
    /// How often each key came.
    keys: BTreeMap<String, u32>,
    /// The keys that took effect.
    effects: BTreeSet<String>,
}

impl Provider {
    /// Starts one that refuses so many attempts of each transaction; returns it and its address.
    pub(super) async fn start(refuses: u32) -> (Self, String) {
        let provider = Self::default();
        provider.0.lock().unwrap().refuses = refuses;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = axum::Router::new()
            .route("/charges", post(charge))
            .with_state(provider.clone());
        tokio::spawn(axum::serve(listener, routes).into_future());
        (provider, url)
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().keys.keys().cloned().collect()
    }

    pub(super) fn effects(&self) -> Vec<String> {
        self.0.lock().unwrap().effects.iter().cloned().collect()
    }
}

async fn charge(State(provider): State<Provider>, headers: HeaderMap) -> String {
    let key = headers["idempotency-key"]
        .to_str()
        .unwrap()
        .trim_matches('"')
        .to_owned();
    let (_, attempt) = key.split_once('#').unwrap();
    let mut seen = provider.0.lock().unwrap();
    *seen.keys.entry(key.clone()).or_default() += 1;
    if attempt.parse::<u32>().unwrap() <= seen.refuses {
        return r#"{"status":"CANCELLED"}"#.to_owned();
    }
    seen.effects.insert(key);
    r#"{"status":"DONE"}"#.to_owned()
}
