//! The benchmark's handler behind axum-idempotent with its store in memory; prints the port that it listens on.
//!
//! It keeps an answer for requests of a session only, so that `POST /session` gives one, as a login would.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{process, thread};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use ruts::store::Ttl;
use ruts::store::moka::MokaStore;
use ruts::{CookieOptions, Session, SessionLayer};
use tokio::net::TcpListener;
use tower_cookies::CookieManagerLayer;

const HOUR: i64 = 3_600;

#[tokio::main(worker_threads = 2)]
async fn main() {
    // Whoever started it is gone.
    thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        process::exit(0);
    });
    let keyed = IdempotentOptions::default()
        .use_idempotency_key_header(Some("idempotency-key"), false)
        .expire_after(HOUR);
    let sessions = SessionLayer::new(Arc::new(MokaStore::builder().build()))
        .with_cookie_options(CookieOptions::build().name("session"));
    let charges = Arc::new(AtomicU64::new(0));
    let handler = move |_: String| {
        let number = charges.fetch_add(1, Ordering::Relaxed);
        let answer = format!(r#"{{"id":"ch_{number}","amount":100,"status":"succeeded"}}"#);
        async { ([(CONTENT_TYPE, "application/json")], answer) }
    };
    let router = Router::new()
        .route("/charges", post(handler))
        .layer(IdempotentLayer::<MokaStore>::new(keyed));
    let router = router
        .route("/session", post(begin))
        .layer(sessions)
        .layer(CookieManagerLayer::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    axum::serve(listener, router).await.unwrap();
}

async fn begin(session: Session<MokaStore>) -> &'static str {
    let ttl = Ttl::new(HOUR).unwrap();
    session.set("user", &1_u32, ttl, None).await.unwrap();
    "begun"
}
