//! Who misbehaves, and how. Each script decides by what is asked, so that every run tells the same story.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::Full;

use super::notes::Notes;
use super::peer::{Peer, Reply};
use super::pricing::Pricing;

/// The item that the catalog never has an answer for; nobody else asks for it.
pub(super) const BROKEN_ITEM: u32 = 9_999;

/// How late a late review is.
const LATE: Duration = Duration::from_millis(900);

/// The dependencies of the shop, running.
#[derive(Debug)]
pub(super) struct Cast {
    pub(super) catalog: Peer,
    pub(super) reviews: Peer,
    pub(super) psp: Peer,
    pub(super) mailer: Peer,
    pub(super) pricing: Pricing,
}

impl Cast {
    pub(super) async fn start(notes: &Notes) -> io::Result<Self> {
        Ok(Self {
            catalog: catalog(notes.clone()).await?,
            reviews: reviews(notes.clone()).await?,
            psp: psp(notes.clone()).await?,
            mailer: mailer(notes.clone()).await?,
            pricing: Pricing::start(notes.clone()).await?,
        })
    }
}

/// Flaky: of eight items one is first refused, one is first lost, and the third item asks for a second's wait.
async fn catalog(notes: Notes) -> io::Result<Peer> {
    Peer::start(move |request| {
        let (item, before) = (item(request), notes.request(request.uri.path()));
        match (item % 8, before) {
            _ if item == BROKEN_ITEM => Reply::Answer(busy(None)),
            (3, 0) if item == 3 => Reply::Answer(busy(Some("1"))),
            (1, 0) => Reply::Answer(busy(None)),
            (5, 0) => Reply::Lost,
            _ => Reply::Answer(text(StatusCode::OK, format!("item {item}\n"))),
        }
    })
    .await
}

/// Slow: of ten reviews one comes late the first time, and one whenever it is asked for.
async fn reviews(notes: Notes) -> io::Result<Peer> {
    Peer::start(move |request| {
        let (item, before) = (item(request), notes.request(request.uri.path()));
        let review = text(StatusCode::OK, format!("good, says customer {item}\n"));
        match (item % 10, before) {
            (2, 0) | (7, _) => Reply::Late(LATE, review),
            _ => Reply::Answer(review),
        }
    })
    .await
}

/// A payment provider that commits, and loses its first answer for each key.
async fn psp(notes: Notes) -> io::Result<Peer> {
    Peer::start(move |request| match notes.charge(&request.headers) {
        0 => Reply::Lost,
        _ => Reply::Answer(text(StatusCode::CREATED, "charged\n".to_owned())),
    })
    .await
}

/// Sends the mail, knows no keys, and loses its answer.
async fn mailer(notes: Notes) -> io::Result<Peer> {
    Peer::start(move |request| {
        notes.request(request.uri.path());
        Reply::Lost
    })
    .await
}

pub(super) fn item(request: &Parts) -> u32 {
    let last = request.uri.path().rsplit('/').next();
    last.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn busy(retry_after: Option<&'static str>) -> Response<Full<Bytes>> {
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, "busy\n".to_owned());
    if let Some(wait) = retry_after {
        let wait = http::HeaderValue::from_static(wait);
        response
            .headers_mut()
            .insert(http::header::RETRY_AFTER, wait);
    }
    response
}

pub(super) fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}
