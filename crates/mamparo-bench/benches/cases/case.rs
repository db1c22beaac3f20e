//! One case: a service, and calls through it.

use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use mamparo_core::BoxError;
use tokio::runtime::{Builder, Runtime};
use tower::Service;

/// A timer that is always registered, earlier than any limit of a case: in a busy process one is, and registering a
/// later one then wakes nobody.
const KEEPER: Duration = Duration::from_secs(1);

/// Does so many calls, one after the other.
pub(crate) type Work = Box<dyn FnMut(u64)>;

/// Cases that are compared with the first of them.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) cases: Vec<Case>,
}

/// One thing to measure.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The size of a call's future, in bytes.
    pub(crate) future: usize,
    make: Box<dyn Fn() -> Result<Work, BoxError>>,
}

impl Case {
    /// Calls one instance of a service again and again.
    pub(crate) fn calls<S, Req>(
        name: &'static str,
        request: fn() -> Req,
        service: impl Fn() -> Result<S, BoxError> + 'static,
    ) -> Self
    where
        S: Service<Req> + 'static,
        Req: 'static,
    {
        let make = move || {
            let runtime = runtime()?;
            let inside = runtime.enter();
            let mut service = service()?;
            drop(inside);
            let work = move |calls: u64| {
                let calls = all(&mut service, request, calls);
                runtime.block_on(tokio::task::unconstrained(calls));
            };
            Ok(Box::new(work) as Work)
        };
        Self::new(name, size_of::<S::Future>(), make)
    }

    /// Does work of any kind.
    pub(crate) fn new(
        name: &'static str,
        future: usize,
        make: impl Fn() -> Result<Work, BoxError> + 'static,
    ) -> Self {
        Self {
            name,
            future,
            make: Box::new(make),
        }
    }

    /// Makes the service, in a runtime of its own.
    pub(crate) fn make(&self) -> Result<Work, BoxError> {
        (self.make)()
    }
}

fn runtime() -> io::Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.spawn(async {
        loop {
            tokio::time::sleep(KEEPER).await;
        }
    });
    Ok(runtime)
}

async fn all<S: Service<Req>, Req>(service: &mut S, request: fn() -> Req, calls: u64) {
    // The driver sees the keeper here, before the calls.
    tokio::task::yield_now().await;
    for _ in 0..calls {
        black_box(&call(service, black_box(request())).await);
    }
}

/// One call; what is pending is polled again at once, so that only the layers' own cost is in the figure.
#[inline(always)]
async fn call<S: Service<Req>, Req>(
    service: &mut S,
    request: Req,
) -> Result<S::Response, S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await?;
    let mut future = pin!(service.call(request));
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(answer) = future.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
        }
    })
    .await
}
