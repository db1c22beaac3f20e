//! Making calls, and noting how each went.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::Full;
use mamparo_core::clock::{self, Instant};
use mamparo_core::{BoxError, Rejection};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tower::Service;

use crate::demo::client::{request, send};

/// What takes a request to a dependency, through its layers.
pub(super) trait Client<B>:
    Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<S, B> Client<B> for S where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// One call, as whoever made it saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// After the scene began.
    pub(super) at: Duration,
    pub(super) took: Duration,
    pub(super) end: End,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Answered,
    Failed,
    /// A layer refused to send it.
    Rejected,
}

/// Makes one call.
pub(super) async fn call<B>(
    client: impl Client<B>,
    url: &str,
    began: Instant,
) -> Result<Call, BoxError>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let request = request(Method::GET, url, None)?;
    let start = clock::now();
    let end = match send(client, request).await {
        Ok(answer) if answer.status().is_success() => End::Answered,
        Ok(_) => End::Failed,
        Err(error) => match Rejection::of(&*error) {
            Some(rejection) if !rejection.sent() => End::Rejected,
            _ => End::Failed,
        },
    };
    Ok(Call {
        at: start - began,
        took: clock::now() - start,
        end,
    })
}

/// Makes calls at an even pace, however long each takes, until it is enough; `enough` is asked before each.
///
/// A machine that stands still for a while makes up for nothing: a crowd of late calls would be another scene.
pub(super) async fn offer<B>(
    client: impl Client<B>,
    url: &str,
    pace: Duration,
    mut enough: impl FnMut(Duration) -> bool,
) -> Result<Vec<Call>, BoxError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let began = clock::now();
    let mut ticks = tokio::time::interval(pace);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut under_way = JoinSet::new();
    while !enough(clock::now() - began) {
        let (client, url) = (client.clone(), url.to_owned());
        under_way.spawn(async move { call(client, &url, began).await });
        ticks.tick().await;
    }
    let mut calls = Vec::new();
    while let Some(call) = under_way.join_next().await {
        calls.push(call??);
    }
    calls.sort_by_key(|call| call.at);
    Ok(calls)
}

/// Returns the time that this share of the calls stayed within; zero of none.
pub(super) fn percentile(calls: &[Call], share: f64) -> Duration {
    let mut times: Vec<_> = calls.iter().map(|call| call.took).collect();
    times.sort();
    let rank = (times.len() as f64 * share).ceil() as usize;
    times
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}
