//! The window on a program's policies, over real sockets: read, watched, acted on, and abused.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use mamparo::admin::Admin;
use mamparo::policy::{Format, Policies};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::served::serve;

const TOKEN: &str = "Kc3n0Yt4S1q8mPz7Vw5x";
const SOON: Duration = Duration::from_secs(20);

fn policies() -> Policies {
    let document = "[dependency.catalog]\nretry = { max_attempts = 1 }\nbreaker = { consecutive_failures = 3 }\n";
    let loader = Policies::loader().text("policies.toml", document, Format::Toml);
    loader.load().unwrap()
}

/// Serves it as a program would that tells addresses apart.
async fn open(admin: Admin) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().nest("/admin", admin.router().unwrap());
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());
    address
}

async fn read(client: &reqwest::Client, url: &str) -> (u16, Value) {
    let answer = client.get(url).send().await.unwrap();
    let status = answer.status().as_u16();
    (
        status,
        serde_json::from_str(&answer.text().await.unwrap()).unwrap(),
    )
}

/// Reads a stream until it has told that.
async fn until(stream: &mut reqwest::Response, wanted: &str) -> String {
    let mut told = String::new();
    while !told.contains(wanted) {
        let chunk = timeout(SOON, stream.chunk()).await.unwrap().unwrap();
        told.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_a_breaker_open_why_and_closes_it() {
    let policies = policies();
    let peer = get(async || StatusCode::SERVICE_UNAVAILABLE);
    let peer = serve(Router::new().route("/", peer)).await;
    let stack = policies.dependency("catalog").unwrap().http().unwrap();
    let catalog = mamparo::client::reqwest(reqwest::Client::builder(), &stack).unwrap();
    let call = async || {
        let request = Request::get(format!("http://{peer}/"));
        let request = request.body(reqwest::Body::default()).unwrap();
        catalog.clone().oneshot(request).await
    };

    let address = open(Admin::new(&policies).ready(["catalog"]).actions(TOKEN)).await;
    let (client, window) = (reqwest::Client::new(), format!("http://{address}/admin"));
    let (status, all) = read(&client, &window).await;
    assert_eq!((status, &all["version"]), (200, &1.into()));
    assert_eq!(
        read(&client, &format!("{window}/health/ready")).await.0,
        200
    );
    let mut stream = client.get(format!("{window}/events")).send().await.unwrap();
    until(&mut stream, "event: snapshot").await;

    for _ in 0..3 {
        assert_eq!(call().await.unwrap().status(), 503);
    }
    let refused = call().await;
    assert!(refused.is_err());
    let told = until(&mut stream, "event: breaker").await + &until(&mut stream, "\n\n").await;
    assert!(told.contains(r#""cause":"consecutive_failures""#), "{told}");
    let (_, one) = read(&client, &format!("{window}/dependencies/catalog")).await;
    let breaker = &one["breakers"]["attempts"];
    assert_eq!(
        (&breaker["state"], &breaker["cause"]),
        (&"open".into(), &"consecutive_failures".into())
    );
    let traffic = &one["traffic"];
    assert_eq!(
        (&traffic["operations"], &traffic["attempts"]),
        (&4.into(), &3.into())
    );
    assert_eq!(
        read(&client, &format!("{window}/health/ready")).await.0,
        503
    );

    let act = format!("{window}/dependencies/catalog/breaker/close");
    assert_eq!(client.post(&act).send().await.unwrap().status(), 401);
    let done = client.post(&act).bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(done.status(), 200);
    until(&mut stream, r#""cause":"operator""#).await;
    assert_eq!(
        read(&client, &format!("{window}/health/ready")).await.0,
        200
    );
    assert_eq!(call().await.unwrap().status(), 503);
}

/// Sends bytes as they are; what comes back, or nothing where the connection was cut.
async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let mut answer = Vec::new();
    // A server that refuses may close before it has read all.
    let _cut = socket.write_all(bytes).await;
    let _cut = timeout(SOON, socket.read_to_end(&mut answer))
        .await
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> Option<&str> {
    answer.strip_prefix("HTTP/1.1 ")?.get(..3)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_proper_request_does_nothing_and_the_window_stays_open() {
    let policies = policies();
    let address = open(Admin::new(&policies).actions(TOKEN)).await;
    let path = "/admin/dependencies/catalog/breaker/force-open";
    let post = |headers: &str| {
        format!("POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n")
    };

    let huge = "x".repeat(1024 * 1024);
    let many: String = (0..2_000)
        .map(|number| format!("x-{number}: y\r\n"))
        .collect();
    let long = "y".repeat(8_000);
    for (request, expected) in [
        (post(""), "401"),
        (post("authorization: Bearer \r\n"), "401"),
        (post("authorization: Bearer\r\n"), "401"),
        (post(&format!("authorization: {TOKEN}\r\n")), "401"),
        (post(&format!("authorization: Bearer {long}\r\n")), "401"),
        (post("authorization: Bearer \u{e9}\u{e9}\r\n"), "401"),
        (post(&format!("authorization: Bearer {huge}\r\n")), "431"),
        (post(&many), "431"),
        (
            format!(
                "GET /admin/dependencies/{long} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
            ),
            "404",
        ),
        (
            "GET /admin/dependencies/%00%ff HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
                .into(),
            "404",
        ),
        (
            "DELETE /admin/dependencies HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".into(),
            "405",
        ),
        ("\0\0\0\0\r\n\r\n".into(), "400"),
    ] {
        let answer = raw(address, request.as_bytes()).await;
        // Cut off while it still sends, a client may not see the answer.
        let seen = status(&answer).unwrap_or("431");
        assert_eq!(seen, expected, "{:.80}", request.escape_debug().to_string());
        assert!(!answer.contains(TOKEN));
    }
    let (status, one) = read(
        &reqwest::Client::new(),
        &format!("http://{address}/admin/dependencies/catalog"),
    )
    .await;
    assert_eq!(
        (status, &one["breakers"]["attempts"]["state"]),
        (200, &"closed".into())
    );
}

/// Asks for events, and reads them until a breaker has opened: true, or until the end: false.
async fn hears_it_open(address: SocketAddr) -> bool {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = b"GET /admin/events HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let (mut answer, mut part) = (String::new(), [0; 4096]);
    while !answer.contains("\"forced_open\"") {
        let read = timeout(SOON, socket.read(&mut part))
            .await
            .unwrap()
            .unwrap();
        answer.push_str(&String::from_utf8_lossy(&part[..read]));
        if read == 0 {
            let refused = answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: ");
            assert!(refused, "{answer}");
            return false;
        }
    }
    assert!(answer.contains("event: snapshot"), "{answer}");
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_who_want_events_so_many_get_them_and_the_others_hear_why_not() {
    const PLACES: usize = 64; // the default
    let policies = policies();
    let admin = Admin::new(&policies).snapshot_every(Duration::from_millis(200));
    let address = open(admin).await;
    let mut readers = JoinSet::new();
    for _ in 0..1_000 {
        readers.spawn(hears_it_open(address));
    }
    while readers.len() > PLACES {
        let refused = timeout(SOON, readers.join_next()).await.unwrap();
        assert!(!refused.unwrap().unwrap());
    }
    let catalog = policies.dependency("catalog").unwrap().http().unwrap();
    catalog.breaker_handle().unwrap().force_open();
    while let Some(told) = timeout(SOON, readers.join_next()).await.unwrap() {
        assert!(told.unwrap());
    }
    // Their places are free once the server has seen them go.
    let client = reqwest::Client::new();
    let events = format!("http://{address}/admin/events");
    let free = async {
        while client.get(&events).send().await.unwrap().status() != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, free).await.unwrap();
}
