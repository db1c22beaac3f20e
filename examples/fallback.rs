//! Shows a page that still comes, marked partial, while its recommendations are down.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use mamparo::fallback::{self, FallbackLayer, FallbackPolicy, FellBack};
use mamparo_core::BoxError;
use tower::{ServiceBuilder, ServiceExt};

/// Recommendations, which are down; and prices, which are asked for with a wrong name.
async fn shop(request: Request<String>) -> Result<Response<String>, BoxError> {
    let status = match request.uri().path() {
        "/recommendations" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::NOT_FOUND,
    };
    Ok(Response::builder().status(status).body(String::new())?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let partial = HeaderName::from_static("x-partial");
    let policy = FallbackPolicy::builder()
        .header(partial.clone(), HeaderValue::from_static("true"))
        .max_concurrent(100)
        .build()?;
    let none = fallback::value(Response::new("[]".to_owned()));
    let shop = ServiceBuilder::new()
        .layer(FallbackLayer::http(policy, none).dependency("shop"))
        .service_fn(shop);

    let get = |path| Request::get(path).body(String::new());
    let answer = shop.clone().oneshot(get("/recommendations")?).await?;
    let why = FellBack::of(&answer).and_then(|mark| mark.failed().kind());
    println!(
        "recommendations: {}, because: {:?}",
        answer.status(),
        why.map(mamparo_core::Kind::as_str)
    );
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers().contains_key(&partial));

    let answer = shop.oneshot(get("/prizes")?).await?;
    println!("prizes: {}, which no fallback hides", answer.status());
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    Ok(())
}
