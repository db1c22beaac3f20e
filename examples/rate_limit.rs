//! Shows a rate limit of a dependency's calls: refused at once with the time to come back, waited for, and kept apart by tenant.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::convert::Infallible;
use std::time::Duration;

use mamparo::Rejection;
use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
use mamparo_core::{BoxError, clock};
use tower::{Layer, ServiceExt, service_fn};

/// A letter, and on whose behalf it is sent.
#[derive(Clone, Copy)]
struct Letter(&'static str);

async fn send(letter: Letter) -> Result<&'static str, Infallible> {
    Ok(letter.0)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let rate = RateLimitPolicy::per(Duration::from_secs(1), 20).burst(2);

    let mail = RateLimitLayer::new(rate.build()?).dependency("mail");
    let mail = mail.layer(service_fn(send));
    let mut refused = 0;
    for _ in 0..5 {
        if let Err(error) = mail.clone().oneshot(Letter("acme")).await {
            refused += 1;
            let wait = Rejection::of(&*error).and_then(Rejection::retry_after);
            println!("rejected: {error}; come back in {wait:?}");
        }
    }
    assert_eq!(refused, 3);

    let patient = rate.max_wait(Duration::from_secs(1)).build()?;
    let mail = RateLimitLayer::new(patient).dependency("mail");
    let mail = mail.layer(service_fn(send));
    let start = clock::now();
    for _ in 0..6 {
        mail.clone().oneshot(Letter("acme")).await?;
    }
    println!("six letters, two of them at once: {:?}", start.elapsed());
    assert!(start.elapsed() >= Duration::from_millis(200));

    let apart = RateLimitLayer::new(rate.build()?).per_key(|letter: &Letter| Some(letter.0));
    let mail = apart.layer(service_fn(send));
    for tenant in ["acme", "acme", "acme", "umbrella"] {
        let sent = mail.clone().oneshot(Letter(tenant)).await.is_ok();
        println!("{tenant}: {}", if sent { "sent" } else { "rejected" });
        assert!(sent || tenant == "acme");
    }
    Ok(())
}
