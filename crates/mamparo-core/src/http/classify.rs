//! Which answers are failures, and which of them may be sent again.

use http::{HeaderMap, HeaderName, Method, Response, StatusCode};
use http_body::Body;
use std::sync::{Arc, LazyLock};

use super::{GuardedBody, hint};
use crate::classify::{Classify, End, Ends, Head, Outcome, Settle, known_error};
use crate::clock::{SystemClock, WallClock};
use crate::{BoxError, InvalidSetting, Kind, Resend, Verdict};

/// As many statuses as `also_retry` and `never_retry` may list, each.
pub const MAX_LISTED_STATUSES: usize = 32;

/// As many methods as `idempotent_methods` may list.
pub const MAX_LISTED_METHODS: usize = 32;

/// Judges HTTP answers.
///
/// | answer | verdict | sent again |
/// |---|---|---|
/// | 1xx, 2xx, 3xx | success | – |
/// | 408, 504 | timeout | if idempotent |
/// | 409 | client | if keyed: the first request is still running |
/// | 425 | unavailable | once, unless it was sent as early data (RFC 8470 §5.2) |
/// | 429 | throttled | if idempotent |
/// | 500 | server | if idempotent, once |
/// | 502, 503 | unavailable | if idempotent |
/// | other 4xx | client | never |
/// | other 5xx | server | never |
/// | connect failure, never processed | connect, unavailable | always |
/// | reset, attempt timeout | reset, timeout | if idempotent |
///
/// Idempotent methods are those of RFC 9110 §9.2.2 and QUERY (RFC 10008); any request that carries an
/// idempotency key counts as idempotent too.
///
/// ```
/// use http::{Response, StatusCode};
/// use mamparo_core::{Classify, Kind, http::Http};
///
/// let http = Http::builder().never_retry(StatusCode::INTERNAL_SERVER_ERROR).build()?;
/// let answer = Response::builder().status(503).body(())?;
/// assert_eq!(http.head(Ok(&answer)).verdict.kind(), Some(Kind::Unavailable));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Http {
    rules: Arc<HttpBuilder>,
}

/// Settings of [`Http`].
#[derive(Clone, Debug)]
pub struct HttpBuilder {
    also_retry: Vec<StatusCode>,
    never_retry: Vec<StatusCode>,
    should_retry: Option<HeaderName>,
    exhausted: Option<HeaderName>,
    key: HeaderName,
    /// None for those of the standards.
    idempotent_methods: Option<Vec<Method>>,
    wall_clock: Arc<dyn WallClock>,
}

/// The header by which a mamparo nearer to the dependency says that it has spent all attempts.
pub const EXHAUSTED_HEADER: HeaderName = HeaderName::from_static("x-mamparo-retry");

/// The request header that makes a request safe to send again (draft-ietf-httpapi-idempotency-key-header-07).
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Http {
    /// Returns the name of the request header that carries an idempotency key.
    #[must_use]
    pub fn key_header(&self) -> &HeaderName {
        &self.rules.key
    }

    /// Renames the request header that carries an idempotency key; see [`HttpBuilder::key_header`].
    #[must_use]
    pub fn with_key_header(mut self, name: HeaderName) -> Self {
        Arc::make_mut(&mut self.rules).key = name;
        self
    }

    /// Tells whether requests of a method take effect once, however often they are sent.
    #[must_use]
    pub fn is_idempotent(&self, method: &Method) -> bool {
        match &self.rules.idempotent_methods {
            None => method.is_idempotent(),
            Some(methods) => methods.contains(method),
        }
    }

    /// Starts from the defaults.
    #[must_use]
    pub fn builder() -> HttpBuilder {
        HttpBuilder {
            also_retry: Vec::new(),
            never_retry: Vec::new(),
            should_retry: None,
            exhausted: Some(EXHAUSTED_HEADER),
            key: IDEMPOTENCY_KEY,
            idempotent_methods: None,
            wall_clock: Arc::new(SystemClock),
        }
    }

    fn status(&self, status: StatusCode, headers: &HeaderMap) -> Verdict {
        let verdict = self.by_list(status, by_table(status));
        let verdict = self.by_header(headers, verdict);
        match verdict.kind() {
            Some(kind) if kind != Kind::Client || verdict.resend() != Resend::Never => {
                match hint::server_wait(headers, &*self.rules.wall_clock) {
                    Some(wait) => verdict.after(wait),
                    None => verdict,
                }
            }
            _ => verdict,
        }
    }

    fn by_list(&self, status: StatusCode, verdict: Verdict) -> Verdict {
        if self.rules.never_retry.contains(&status) {
            verdict.with_resend(Resend::Never)
        } else if self.rules.also_retry.contains(&status) {
            let kind = verdict.kind().unwrap_or(Kind::Other);
            Verdict::failure(kind, Resend::IfIdempotent)
        } else {
            verdict
        }
    }

    /// The peer's own word outranks the table; "yes" still asks for an idempotent request.
    fn by_header(&self, headers: &HeaderMap, verdict: Verdict) -> Verdict {
        let says = |name: &Option<HeaderName>, word: &str| {
            let value = name.as_ref().and_then(|name| headers.get(name));
            value.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(word.as_bytes()))
        };
        if verdict.kind().is_none() {
            return verdict;
        }
        if says(&self.rules.exhausted, "exhausted") || says(&self.rules.should_retry, "false") {
            return verdict.forbidden();
        }
        if says(&self.rules.should_retry, "true") && verdict.resend() == Resend::Never {
            return verdict.with_resend(Resend::IfIdempotent);
        }
        verdict
    }
}

const fn by_table(status: StatusCode) -> Verdict {
    match status.as_u16() {
        408 | 504 => Verdict::failure(Kind::Timeout, Resend::IfIdempotent),
        409 => Verdict::failure(Kind::Client, Resend::IfKeyed),
        425 => Verdict::failure(Kind::Unavailable, Resend::UnlessEarlyData).once(),
        429 => Verdict::failure(Kind::Throttled, Resend::IfIdempotent),
        500 => Verdict::failure(Kind::Server, Resend::IfIdempotent).once(),
        502 | 503 => Verdict::failure(Kind::Unavailable, Resend::IfIdempotent),
        400..=499 => Verdict::failure(Kind::Client, Resend::Never),
        501.. => Verdict::failure(Kind::Server, Resend::Never),
        _ => Verdict::SUCCESS,
    }
}

impl Default for Http {
    /// All share the usual rules.
    fn default() -> Self {
        static USUAL: LazyLock<Arc<HttpBuilder>> = LazyLock::new(|| Arc::new(Http::builder()));
        Self {
            rules: Arc::clone(&USUAL),
        }
    }
}

impl HttpBuilder {
    /// Also sends again on this status, if the request is idempotent.
    #[must_use]
    pub fn also_retry(mut self, status: StatusCode) -> Self {
        self.also_retry.push(status);
        self
    }

    /// Never sends again on this status.
    #[must_use]
    pub fn never_retry(mut self, status: StatusCode) -> Self {
        self.never_retry.push(status);
        self
    }

    /// Obeys a response header that says `true` or `false`, as `x-should-retry` does; none by default.
    #[must_use]
    pub fn should_retry_header(mut self, name: HeaderName) -> Self {
        self.should_retry = Some(name);
        self
    }

    /// Names the response header whose value `exhausted` forbids another resend; none turns it off.
    ///
    /// The default is `x-mamparo-retry`.
    #[must_use]
    pub fn exhausted_header(mut self, name: impl Into<Option<HeaderName>>) -> Self {
        self.exhausted = name.into();
        self
    }

    /// Names the request header that carries an idempotency key; `idempotency-key` by default.
    #[must_use]
    pub fn key_header(mut self, name: HeaderName) -> Self {
        self.key = name;
        self
    }

    /// Names the idempotent methods: these, and no others, unless a request carries a key.
    ///
    /// By default they are those of RFC 9110 §9.2.2 and QUERY. The contract of a dependency may say otherwise: its PUT
    /// may count a visit, its POST may only search.
    ///
    /// ```
    /// use http::Method;
    /// use mamparo_core::http::Http;
    ///
    /// let http = Http::builder().idempotent_methods([Method::GET, Method::HEAD]).build()?;
    /// assert!(http.is_idempotent(&Method::GET));
    /// assert!(!http.is_idempotent(&Method::PUT));
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    #[must_use]
    pub fn idempotent_methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.idempotent_methods = Some(methods.into_iter().collect());
        self
    }

    /// Sets the wall clock against which an HTTP date is read when the answer has no `Date`.
    #[must_use]
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.wall_clock = Arc::new(clock);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses a status that both lists name, one that is no failure, lists longer than
    /// [`MAX_LISTED_STATUSES`], and more methods than [`MAX_LISTED_METHODS`].
    pub fn build(self) -> Result<Http, InvalidSetting> {
        for (name, list) in [
            ("also_retry", &self.also_retry),
            ("never_retry", &self.never_retry),
        ] {
            if list.len() > MAX_LISTED_STATUSES {
                return Err(InvalidSetting::new(
                    name,
                    list.len(),
                    "must list 32 statuses at most",
                ));
            }
        }
        let methods = self.idempotent_methods.as_ref().map_or(0, Vec::len);
        if methods > MAX_LISTED_METHODS {
            let most = "must list 32 methods at most";
            return Err(InvalidSetting::new("idempotent_methods", methods, most));
        }
        let also = "must be a 4xx or 5xx status that never_retry does not name: a success is not sent again";
        for status in &self.also_retry {
            let failed = status.is_client_error() || status.is_server_error();
            if !failed || self.never_retry.contains(status) {
                return Err(InvalidSetting::new("also_retry", status.as_u16(), also));
            }
        }
        Ok(Http {
            rules: Arc::new(self),
        })
    }
}

impl<B: 'static> Classify<Response<B>> for Http {
    fn head(&self, outcome: Result<&Response<B>, &BoxError>) -> Head {
        match outcome {
            Ok(response) => {
                let verdict = self.status(response.status(), response.headers());
                if verdict.kind().is_some() {
                    Head::last(verdict)
                } else {
                    Head::open(verdict)
                }
            }
            // An error that nobody knows proves nothing about the request: it is not sent again.
            Err(error) => Head::last(
                known_error(error).unwrap_or(Verdict::failure(Kind::Other, Resend::Never)),
            ),
        }
    }
}

/// Says what the end of an HTTP answer means: the head decides, unless the stream breaks.
#[derive(Clone, Copy, Debug)]
pub struct HttpEnds;

impl Ends for HttpEnds {
    fn end(&self, head: Verdict, end: End<'_>) -> Verdict {
        match end {
            // The dependency has answered; that the caller stopped reading is not its failure.
            End::Trailers(_) | End::Dropped => head,
            End::Error(error) => known_error(error)
                .unwrap_or(Verdict::failure(Kind::Reset, Resend::Never))
                .with_resend(Resend::Never),
        }
    }
}

impl<B> Outcome<Response<B>> for Http
where
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    type Out<G: Settle> = Response<GuardedBody<B, G, HttpEnds>>;

    fn tie<G: Settle>(&self, response: Response<B>, head: Head, mut guard: G) -> Self::Out<G> {
        let over = head.last || response.body().is_end_stream();
        if over {
            guard.settle(head.verdict);
            return response.map(GuardedBody::settled);
        }
        response.map(|body| GuardedBody::open(body, guard, head.verdict, HttpEnds))
    }

    #[inline]
    fn untied<G: Settle>(response: Response<B>) -> Self::Out<G> {
        response.map(GuardedBody::settled)
    }
}
