//! Pages whose recommendations can't be had now and then: they come all the same, marked partial.

use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use mamparo::fallback::{self, FallbackPolicy, FellBack};
use mamparo::retry::RetryPolicy;
use mamparo_core::{BoxError, Kind};
use serde::Serialize;
use std::time::Duration;

use crate::demo::cast::{item, text};
use crate::demo::client::{request, send, stack, via_fallback};
use crate::demo::peer::{Peer, Reply};
use crate::telemetry::Pipeline;

/// As many pages are asked for, and one that does not exist.
const PAGES: u32 = 30;
const NO_PAGE: u32 = 404;

/// Of one page in so many, the recommendations are unavailable.
const DOWN_ONE_IN: u32 = 3;

const WAITS: Duration = Duration::from_secs(2);

/// The mark that whoever asked for a page sees.
const PARTIAL: HeaderName = HeaderName::from_static("x-partial");

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Pages {
    pub(super) pages: u32,
    pub(super) answered: u32,
    /// For how many of them the dependency had no answer.
    pub(super) unavailable: u32,
    /// As many were marked, all of them among those.
    pub(super) partial: u32,
    pub(super) wrongly_marked: u32,
    /// How a request was answered that was at fault itself.
    pub(super) no_such_page: u16,
}

/// Asks for the pages, one after the other.
pub(super) async fn pages(telemetry: &Pipeline) -> Result<Pages, BoxError> {
    let peer = Peer::start(|request| {
        Reply::Answer(match item(request) {
            NO_PAGE => text(StatusCode::NOT_FOUND, "no such item\n".to_owned()),
            item if item.is_multiple_of(DOWN_ONE_IN) => {
                text(StatusCode::BAD_GATEWAY, String::new())
            }
            item => text(StatusCode::OK, format!("with item {item} goes item 7\n")),
        })
    })
    .await?;
    let once = RetryPolicy::builder().max_attempts(1);
    let policy = FallbackPolicy::builder().header(PARTIAL, HeaderValue::from_static("true"));
    let instead = Response::new(Full::from("no recommendations\n"));
    let stack = stack(telemetry, "recommendations", WAITS, WAITS)?
        .retry(once.build()?)
        .fallback(policy.build()?, fallback::value(instead));
    let client = via_fallback(&stack);
    let mut pages = Pages::default();
    for item in (1..=PAGES).chain([NO_PAGE]) {
        let url = peer.url(&format!("/recommendations/{item}"));
        let answer = send(client.clone(), request(Method::GET, &url, None)?).await?;
        if item == NO_PAGE {
            pages.no_such_page = answer.status().as_u16();
        } else {
            pages.take(item, &answer);
        }
    }
    Ok(pages)
}

impl Pages {
    fn take<B>(&mut self, item: u32, answer: &Response<B>) {
        let unavailable = item.is_multiple_of(DOWN_ONE_IN);
        let why = FellBack::of(answer).and_then(|mark| mark.failed().kind());
        let partial = answer.headers().contains_key(PARTIAL) && why == Some(Kind::Unavailable);
        self.pages += 1;
        self.answered += u32::from(answer.status().is_success());
        self.unavailable += u32::from(unavailable);
        self.partial += u32::from(unavailable && partial);
        self.wrongly_marked += u32::from(!unavailable && answer.headers().contains_key(PARTIAL));
    }
}
