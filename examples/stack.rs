//! Shows the recommended stack before a dependency that dies and comes back: what it says of itself, what it lets through, what it answers.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use mamparo::breaker::{BreakerPolicy, BreakerState};
use mamparo::fallback::{self, FallbackPolicy, FellBack};
use mamparo::rate_limit::RateLimitPolicy;
use mamparo::replay::ReplayBody;
use mamparo::stack::Stack;
use mamparo_core::BoxError;
use tower::{Layer, ServiceExt, service_fn};

/// A dependency, which may be down; counts what reaches it.
#[derive(Default)]
struct Catalog {
    down: AtomicBool,
    sends: AtomicU32,
}

impl Catalog {
    fn answer(&self) -> Response<String> {
        self.sends.fetch_add(1, Relaxed);
        let mut answer = Response::new("fresh".to_owned());
        if self.down.load(Relaxed) {
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        answer
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let old = fallback::from_fn(|_| Ok::<_, BoxError>(Response::new("an hour old".to_owned())));
    // Longer than a call that finds it open still waits for its resend, or that one probes it.
    let open = Duration::from_secs(1);
    let stack = Stack::http("catalog")
        .breaker(BreakerPolicy::builder().open_wait(open, 5 * open).build()?)
        .rate_limit(RateLimitPolicy::per(Duration::from_secs(1), 1_000).build()?)
        .fallback(FallbackPolicy::default(), old);
    println!("{stack}\n");
    assert_eq!(stack.worst_case().attempts, 3);

    let peer = Arc::new(Catalog::default());
    let asked = Arc::clone(&peer);
    let transport = service_fn(move |_: Request<ReplayBody<String>>| {
        std::future::ready(Ok::<_, BoxError>(asked.answer()))
    });
    let catalog = stack.layer(transport);
    let breaker = stack.breaker_handle().ok_or("the breaker is on")?;

    for (down, wait) in [
        (false, Duration::ZERO),
        (true, Duration::ZERO),
        (false, 2 * open),
    ] {
        tokio::time::sleep(wait).await;
        peer.down.store(down, Relaxed);
        peer.sends.store(0, Relaxed);
        let mut old = 0;
        for _ in 0..10 {
            let request = Request::get("/book/1").body(String::new())?;
            let answer = catalog.clone().oneshot(request).await?;
            old += u32::from(FellBack::of(&answer).is_some());
        }
        let (sends, state) = (peer.sends.load(Relaxed), breaker.state());
        println!("down: {down:5}; 10 calls, {sends:2} sends, {old:2} old answers; then {state:?}");
        let expected = match down {
            true => (5, 10, BreakerState::Open),
            false => (sends, 10 - sends, BreakerState::Closed),
        };
        assert_eq!((sends, old, state), expected);
    }
    Ok(())
}
