//! Two services that retry, one behind the other: the attempts of the second are not multiplied by the first.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, Request, Response, StatusCode};
use axum::routing::get;
use hyper_util::client::legacy::connect::HttpConnector;
use mamparo::breaker::BreakerPolicy;
use mamparo::client::HyperClient;
use mamparo::problem::Problem;
use mamparo::rejection::RejectionPolicy;
use mamparo::retry::RetryPolicy;
use mamparo::serve;
use mamparo::stack::Stack;
use mamparo_core::Backoff;
use mamparo_core::http::EXHAUSTED_HEADER;
use tokio::net::TcpListener;
use tower::ServiceExt;

use crate::served::{exchange, serve};

type Client = HyperClient<HttpConnector, String>;

fn client(name: &str) -> Client {
    let backoff = Backoff::builder().base(Duration::from_millis(1)).build();
    let retry = RetryPolicy::builder().backoff(backoff.unwrap());
    let stack = Stack::http(name).breaker(BreakerPolicy::off());
    let stack = stack.retry(retry.build().unwrap());
    mamparo::client::hyper(HttpConnector::new(), &stack)
}

fn question(address: SocketAddr) -> Request<String> {
    let request = Request::get(format!("http://{address}/"));
    request.body(String::new()).unwrap()
}

/// Hands the answer on as it came.
async fn hands_on(client: Client, next: SocketAddr) -> Result<Response<Body>, Problem> {
    let answer = client.oneshot(question(next)).await?;
    Ok(answer.map(Body::new))
}

/// Answers in words of its own, as most handlers do.
async fn answers(client: Client, next: SocketAddr) -> Result<Response<Body>, Problem> {
    let answer = client.oneshot(question(next)).await?;
    Ok(Problem::check("last", answer)?.map(Body::new))
}

/// A service whose answer nobody can make anything of, and how often it was asked.
async fn busy() -> (SocketAddr, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let busy = get(async move || {
        count.fetch_add(1, Ordering::Relaxed);
        (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")])
    });
    (serve(Router::new().route("/", busy)).await, asked)
}

/// Asks a service in the middle, which asks the last; returns the answer, and how often the last was asked.
async fn ask<F>(
    handler: impl Fn(Client, SocketAddr) -> F + Clone + Send + Sync + 'static,
    policy: RejectionPolicy,
) -> (Response<Body>, usize)
where
    F: Future<Output = Result<Response<Body>, Problem>> + Send + 'static,
{
    let (last, asked) = busy().await;
    let next = client("last");
    let routes = Router::new().route("/", get(move || handler(next.clone(), last)));
    let middle = serve(routes.layer(serve::http().rejection(policy))).await;
    let answer = client("middle").oneshot(question(middle)).await.unwrap();
    (answer.map(Body::new), asked.load(Ordering::Relaxed))
}

fn told(header: Option<HeaderName>) -> RejectionPolicy {
    let policy = RejectionPolicy::builder().exhausted_header(header);
    policy.retry_after_jitter(0.0).build().unwrap()
}

/// Three attempts of the second, and one of the first, which is told that all are spent.
#[tokio::test]
async fn attempts_that_are_spent_further_in_are_not_multiplied() {
    let marked = || told(Some(EXHAUSTED_HEADER));
    let (answer, asked) = ask(hands_on, marked()).await;
    assert_eq!((answer.status().as_u16(), asked), (503, 3));
    assert_eq!(answer.headers()[EXHAUSTED_HEADER], "exhausted");
    let (answer, asked) = ask(answers, marked()).await;
    assert_eq!((answer.status().as_u16(), asked), (503, 3));
    assert_eq!(answer.headers()[EXHAUSTED_HEADER], "exhausted");
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
}

/// What the two tests above would see if nobody said so.
#[tokio::test]
async fn without_the_mark_they_would_be() {
    let (_, asked) = ask(hands_on, told(None)).await;
    assert_eq!(asked, 9);
    let (_, asked) = ask(answers, told(None)).await;
    assert_eq!(asked, 9);
}

/// The same where the last can't be reached at all: there is no answer to hand on.
#[tokio::test]
async fn an_error_names_the_dependency_and_says_that_attempts_are_spent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let next = client("last");
    let handler = get(move || hands_on(next.clone(), nobody));
    let routes = Router::new().route("/", handler).layer(serve::http());
    let answer = exchange(serve(routes).await, "GET / HTTP/1.1").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.contains("x-mamparo-retry: exhausted\r\n"),
        "{answer}"
    );
    assert!(answer.contains("retry-after: "), "{answer}");
    assert!(answer.contains(r#""dependency":"last""#), "{answer}");
    assert!(!answer.contains(&nobody.to_string()), "{answer}");
}
