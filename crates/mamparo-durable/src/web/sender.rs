//! Sends what the engine claims over HTTP.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, Limited};
use mamparo_core::BoxError;
use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_core::http::hint;
use tower_service::Service;

use super::judge::MAX_ANSWER_BYTES;
use super::{Judge, StoredRequest};
use crate::backend::{BoxFuture, Request};
use crate::machine::{Answer, Outcome, Utc};

/// The header that carries the key of an attempt.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Sends stored requests through a client stack, and judges its answers.
///
/// Each send of an attempt has the same key, `{id}#{attempt}`, in `idempotency-key`, in quotes as a structured field string (RFC 9651
/// §3.3.3), or bare; what is no visible ASCII in it is percent-encoded. Attempt 1 has the one that was [stored](StoredRequest::with_key)
/// with the request, if there is one, and the later ones are in quotes if that is. A `Retry-After` of an answer that is no
/// success is kept: the next attempt comes no sooner.
///
/// `B` is the body that the client takes.
#[derive(Debug)]
pub struct HttpSender<C, B> {
    client: C,
    shared: Arc<Shared>,
    body: PhantomData<fn(B)>,
}

impl<C: Clone, B> Clone for HttpSender<C, B> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            shared: Arc::clone(&self.shared),
            body: PhantomData,
        }
    }
}

#[derive(Clone, Debug)]
struct Shared {
    judge: Judge,
    headers: HeaderMap,
    bare: bool,
    clock: Arc<dyn WallClock>,
}

impl<C, B> HttpSender<C, B> {
    /// Sends through this client.
    pub fn new(client: C, judge: Judge) -> Self {
        let shared = Shared {
            judge,
            headers: HeaderMap::new(),
            bare: false,
            clock: Arc::new(SystemClock),
        };
        Self {
            client,
            shared: Arc::new(shared),
            body: PhantomData,
        }
    }

    /// Adds headers to each request: secrets, that are not stored.
    #[must_use]
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.shared_mut().headers = headers;
        self
    }

    /// Sends the key without quotes, for servers that take the raw value.
    #[must_use]
    pub fn bare_keys(mut self) -> Self {
        self.shared_mut().bare = true;
        self
    }

    /// Sets the wall clock; the machine's by default.
    #[must_use]
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.shared_mut().clock = Arc::new(clock);
        self
    }

    pub(crate) fn shared_clock(mut self, clock: Arc<dyn WallClock>) -> Self {
        self.shared_mut().clock = clock;
        self
    }

    fn shared_mut(&mut self) -> &mut Shared {
        Arc::make_mut(&mut self.shared)
    }
}

impl<C, B, D> Service<Request> for HttpSender<C, B>
where
    C: Service<http::Request<B>, Response = Response<D>> + Clone + Send + 'static,
    C::Future: Send,
    C::Error: Into<BoxError>,
    B: From<Bytes> + Send + 'static,
    D: Body + Send + 'static,
    D::Data: Send,
    D::Error: Into<BoxError>,
{
    type Response = Option<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Option<Answer>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (client, shared) = (self.client.clone(), Arc::clone(&self.shared));
        Box::pin(async move { shared.send(client, &request).await.map(Some) })
    }
}

impl Shared {
    async fn send<C, B, D>(&self, mut client: C, request: &Request) -> Result<Answer, BoxError>
    where
        C: Service<http::Request<B>, Response = Response<D>>,
        C::Error: Into<BoxError>,
        B: From<Bytes>,
        D: Body,
        D::Error: Into<BoxError>,
    {
        let stored = match StoredRequest::decode(&request.body) {
            Ok(stored) => stored,
            // No later attempt can read it either.
            Err(error) => {
                let never = request.answer(Outcome::Declined);
                return Ok(never.with_reason(error.to_string().as_str()));
            }
        };
        let key = match stored.key() {
            // Sent again, attempt 1 is what the caller sent.
            Some(key) if request.attempt == 1 => key.clone(),
            Some(own) => key(&request.key(), !own.as_bytes().starts_with(b"\""))?,
            None => key(&request.key(), self.bare)?,
        };
        let mut sent = stored.into_request().map(B::from);
        // Of a name that was stored, these take the place; of a name that comes twice, both stay.
        sent.headers_mut().extend(self.headers.clone());
        sent.headers_mut().insert(KEY, key);
        poll_fn(|cx| client.poll_ready(cx))
            .await
            .map_err(Into::into)?;
        let (head, body) = client.call(sent).await.map_err(Into::into)?.into_parts();
        let (outcome, reason) = self.judge.judge(head.status, &self.read(body).await?);
        let mut answer = request.answer(outcome);
        answer.reason = reason;
        let wait = hint::retry_after(&head.headers, &*self.clock);
        answer.not_before = wait
            .filter(|_| outcome != Outcome::Success)
            .map(|wait| Utc::of(&*self.clock).plus(wait));
        Ok(answer)
    }

    /// Reads what there is to judge.
    async fn read<D>(&self, body: D) -> Result<Bytes, BoxError>
    where
        D: Body,
        D::Error: Into<BoxError>,
    {
        if !self.judge.reads_bodies() {
            return Ok(Bytes::new());
        }
        match Limited::new(body, MAX_ANSWER_BYTES).collect().await {
            Ok(whole) => Ok(whole.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => Ok(Bytes::new()),
            Err(error) => Err(error),
        }
    }
}

pub(crate) fn key(key: &str, bare: bool) -> Result<HeaderValue, BoxError> {
    let mut text = String::with_capacity(key.len() + 2);
    let quote = if bare { "" } else { "\"" };
    text.push_str(quote);
    for byte in key.bytes() {
        match byte {
            b'"' | b'\\' if !bare => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text.push_str(quote);
    Ok(HeaderValue::try_from(text)?)
}
