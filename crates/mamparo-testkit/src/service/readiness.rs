//! Services whose readiness follows a fixed rule.

use crate::BoxError;
use std::fmt::{self, Debug};
use std::future::{Pending, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;
use tower_service::Service;

/// Waits until the service is ready, as tower's `ServiceExt::ready` does.
///
/// # Errors
///
/// Returns the error of the service's own `poll_ready`.
pub async fn ready<S: Service<Req>, Req>(service: &mut S) -> Result<&mut S, S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await?;
    Ok(service)
}

/// A service that is pending for ever; calling it panics.
pub struct NeverReady<Res>(PhantomData<fn() -> Res>);

impl<Res> NeverReady<Res> {
    /// Makes the service.
    #[must_use]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<Req, Res> Service<Req> for NeverReady<Res> {
    type Response = Res;
    type Error = BoxError;
    type Future = Pending<Result<Res, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Pending
    }

    fn call(&mut self, _: Req) -> Self::Future {
        panic!("a service was called that is never ready")
    }
}

/// A service whose readiness fails with a text; calling it panics.
pub struct FailsReadiness<Res> {
    why: &'static str,
    response: PhantomData<fn() -> Res>,
}

impl<Res> FailsReadiness<Res> {
    /// Makes a service that refuses with this text.
    #[must_use]
    pub fn new(why: &'static str) -> Self {
        Self {
            why,
            response: PhantomData,
        }
    }
}

impl<Req, Res> Service<Req> for FailsReadiness<Res> {
    type Response = Res;
    type Error = BoxError;
    type Future = Pending<Result<Res, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Err(self.why.into()))
    }

    fn call(&mut self, _: Req) -> Self::Future {
        panic!("a service was called whose readiness fails")
    }
}

/// A service that is pending at first: for some polls, or for some time after the first poll.
///
/// The rule starts anew in each clone and after each call.
#[derive(Debug)]
pub struct ReadyAfter<S> {
    inner: S,
    rule: Rule,
    polls: u32,
    sleep: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Polls(u32),
    Time(Duration),
}

impl<S> ReadyAfter<S> {
    /// Is pending for this many polls, and asks to be polled again each time.
    pub fn polls(inner: S, polls: u32) -> Self {
        Self::new(inner, Rule::Polls(polls))
    }

    /// Is pending for this long after the first poll, in tokio's time.
    pub fn time(inner: S, time: Duration) -> Self {
        Self::new(inner, Rule::Time(time))
    }

    fn new(inner: S, rule: Rule) -> Self {
        Self {
            inner,
            rule,
            polls: 0,
            sleep: None,
        }
    }

    fn poll_rule(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.rule {
            Rule::Polls(wanted) if self.polls < wanted => {
                self.polls += 1;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Rule::Polls(_) => Poll::Ready(()),
            Rule::Time(time) => self
                .sleep
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(time)))
                .as_mut()
                .poll(cx),
        }
    }
}

impl<S, Req> Service<Req> for ReadyAfter<S>
where
    S: Service<Req>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        ready!(self.poll_rule(cx));
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> S::Future {
        self.polls = 0;
        self.sleep = None;
        self.inner.call(request)
    }
}

impl<S: Clone> Clone for ReadyAfter<S> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.rule)
    }
}

impl<Res> Clone for NeverReady<Res> {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl<Res> Default for NeverReady<Res> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Res> Debug for NeverReady<Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NeverReady")
    }
}

impl<Res> Clone for FailsReadiness<Res> {
    fn clone(&self) -> Self {
        Self::new(self.why)
    }
}

impl<Res> Debug for FailsReadiness<Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FailsReadiness").field(&self.why).finish()
    }
}
