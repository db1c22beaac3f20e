//! A connection's limit, poll by poll in paused time; `crate::client` has it over real sockets.

use std::future::{Future, Pending};
use std::io;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Uri;
use mamparo_core::{BoxError, Classify, Kind, Plain, Reason, Rejection, Resend, Verdict, clock};
use mamparo_testkit::service::{Door, ReadyAfter, Script, Step};
use tower::{Layer, Service, ServiceExt};

use super::*;
use crate::retry::{RetryLayer, RetryPolicy};

/// Connects to addresses; a connection is a number.
type Connector = Script<Uri, u32>;

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn within(limit: Duration) -> ConnectTimeoutLayer {
    let layer = ConnectTimeoutLayer::new(limit).unwrap();
    layer.dependency("catalog")
}

fn address() -> Uri {
    Uri::from_static("http://catalog/")
}

fn rejection(error: &BoxError) -> &Rejection {
    Rejection::of(&**error).expect("a rejection")
}

/// It was never used, so the request may be sent again whatever it is.
#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_too_long_is_given_up_and_nothing_was_sent() {
    let slow = Connector::new([Step::answer(1).after(millis(301))]);
    let start = clock::now();
    let mut call = std::pin::pin!(within(millis(300)).layer(slow.clone()).call(address()));
    let error = call.as_mut().await.unwrap_err();
    assert_eq!(clock::now() - start, millis(300));
    assert_eq!(slow.dropped(), 1, "and not only when the caller lets go");
    let rejection = rejection(&error);
    assert_eq!(
        (rejection.reason(), rejection.sent()),
        (Reason::ConnectTimedOut, false)
    );
    let says = "catalog: connect timed out: no connection within 300ms";
    assert_eq!(error.to_string(), says);
    let verdict = Classify::<u32>::head(&Plain::not_idempotent(), Err(&error)).verdict;
    assert_eq!(verdict, Verdict::failure(Kind::Connect, Resend::Always));
}

#[tokio::test(start_paused = true)]
async fn another_connection_is_tried_even_for_a_request_that_is_not_idempotent() {
    let connector = Connector::new([Step::hang(), Step::answer(7)]);
    let retry = RetryLayer::new(RetryPolicy::default(), Plain::not_idempotent());
    let service = (retry, within(millis(300))).layer(connector.clone());
    assert_eq!(service.oneshot(address()).await.unwrap(), 7);
    assert_eq!(connector.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_there_in_time_or_refused_is_passed_on() {
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    let steps = [Step::answer(7).after(millis(299)), Step::error(refused)];
    let mut service = within(millis(300)).layer(Connector::new(steps));
    assert_eq!(service.call(address()).await.unwrap(), 7);
    let error = service.call(address()).await.unwrap_err();
    assert!(Rejection::of(&*error).is_none() && error.is::<io::Error>());
}

/// Row P-A10's rule, for a connector that limits how many it makes at once.
#[tokio::test(start_paused = true)]
async fn the_wait_for_the_connector_counts() {
    let connector = Connector::new([Step::answer(1).after(millis(200))]);
    let service = within(millis(300)).layer(ReadyAfter::time(connector, millis(200)));
    let start = clock::now();
    assert!(rejection(&service.oneshot(address()).await.unwrap_err()).is_connect_timeout());
    assert_eq!(clock::now() - start, millis(300));

    let door = Door::closed();
    let service = within(millis(300)).layer(door.before(Connector::new([])));
    door.fail("no more connections");
    let error = service.oneshot(address()).await.unwrap_err();
    assert_eq!(error.to_string(), "no more connections");
}

#[tokio::test(start_paused = true)]
async fn a_connection_takes_a_second_at_most_unless_told_otherwise() {
    let hang = || Connector::new([Step::hang()]);
    let start = clock::now();
    let error = ConnectTimeoutLayer::default()
        .layer(hang())
        .oneshot(address())
        .await
        .unwrap_err();
    assert!(rejection(&error).is_connect_timeout());
    assert_eq!(clock::now() - start, Duration::from_secs(1));
    for layer in [ConnectTimeoutLayer::none(), within(Duration::MAX)] {
        let call = layer.layer(hang()).oneshot(address());
        let hour = tokio::time::timeout(Duration::from_secs(3_600), call).await;
        assert!(hour.is_err(), "it waits on");
    }
}

/// Without a runtime, so that whoever makes a timer panics.
#[test]
fn a_connection_that_is_there_at_once_makes_no_timer() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut service = within(millis(300)).layer(Connector::new([Step::answer(7)]));
    assert!(service.poll_ready(&mut cx).is_ready());
    let mut call = std::pin::pin!(service.call(address()));
    assert!(matches!(call.as_mut().poll(&mut cx), Poll::Ready(Ok(7))));
    let mut endless = std::pin::pin!(
        ConnectTimeoutLayer::none()
            .layer(Connector::new([Step::hang()]))
            .call(address())
    );
    assert!(endless.as_mut().poll(&mut cx).is_pending());
}

/// What hyper-util and tonic ask of a connector.
#[test]
fn its_future_can_be_moved_where_the_connectors_can() {
    fn asked<S>(_: &S)
    where
        S: Service<Uri, Error = BoxError, Future: Unpin + Send + 'static>
            + Clone
            + Send
            + Sync
            + 'static,
    {
    }
    let connector =
        tower::service_fn(|_: Uri| -> Pending<io::Result<u32>> { std::future::pending() });
    asked(&within(millis(300)).layer(connector));
}

/// Row C20: at build time, by name.
#[test]
fn a_limit_of_nothing_is_refused_by_name() {
    let error = ConnectTimeoutLayer::new(Duration::ZERO).unwrap_err();
    assert_eq!((error.setting(), error.value()), ("connect_timeout", "0s"));
}
