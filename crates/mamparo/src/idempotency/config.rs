//! The settings of idempotency keys.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderName, Method, StatusCode};
use mamparo_core::InvalidSetting;
use mamparo_core::http::IDEMPOTENCY_KEY;

use super::checks;
use super::kept::KEPT_HEADERS;
use super::key::{KeySyntax, MAX_KEY_LEN};
use super::store::OnExpiry;

/// How requests with an idempotency key are served.
///
/// There are two ways to begin, since whose keys they are must be said: [`per_principal`](Self::per_principal) and
/// [`for_all_callers`](Self::for_all_callers).
///
/// ```
/// use mamparo::idempotency::{IdempotencyPolicy, OnExpiry};
/// use std::time::Duration;
///
/// let policy = IdempotencyPolicy::per_principal(|head| {
///     let account = head.headers.get("x-account")?; // set by the layer that authenticates
///     Some(account.as_bytes().to_vec())
/// })
/// .required()
/// .retention(Duration::from_secs(3 * 86_400))
/// .retry_horizon(Duration::from_secs(2 * 86_400))
/// .on_expiry(OnExpiry::RunAgain)
/// .build()?;
/// println!("{}", policy.describe()); // for the page that callers read
///
/// let error = IdempotencyPolicy::for_all_callers()
///     .retention(Duration::from_secs(60))
///     .retry_horizon(Duration::from_secs(3600))
///     .build()
///     .unwrap_err();
/// assert_eq!(error.setting(), "retention");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct IdempotencyPolicy {
    pub(super) settings: IdempotencyBuilder,
}

/// Settings of an [`IdempotencyPolicy`].
#[derive(Clone, Debug)]
pub struct IdempotencyBuilder {
    pub(super) principal: Principal,
    pub(super) namespace: Cow<'static, str>,
    pub(super) header: HeaderName,
    pub(super) syntax: KeySyntax,
    pub(super) longest_key: usize,
    pub(super) required: bool,
    pub(super) methods: Vec<Method>,
    pub(super) compared: Vec<HeaderName>,
    pub(super) kept: Vec<HeaderName>,
    pub(super) request_limit: usize,
    pub(super) answer_limit: usize,
    pub(super) stored: Stored,
    pub(super) retention: Duration,
    pub(super) horizon: Duration,
    pub(super) lease: Duration,
    pub(super) on_expiry: OnExpiry,
    pub(super) indeterminate_status: StatusCode,
    pub(super) on_store_failure: OnStoreFailure,
    pub(super) store_timeout: Duration,
    pub(super) retry_after: Duration,
    pub(super) left_behind: usize,
    pub(super) documentation: Option<String>,
}

/// Which answers are stored, and so given again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stored {
    /// All that the handler gives, errors too, as the draft says.
    #[default]
    All,
    /// All but those that say the server failed: after such a one the request is run again.
    NotServerErrors,
    /// Those that say it is done: after any error the request is run again.
    Successes,
}

/// What a request with a key gets while the store fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// 503 with Retry-After: nothing is run that could not be recognised later.
    #[default]
    Refuse,
    /// It is run as if it had no key, which is reported: it may happen twice.
    RunUnprotected,
}

/// Whose keys they are.
#[derive(Clone)]
pub(super) enum Principal {
    Of(Arc<OfRequest>),
    Anyone,
}

type OfRequest = dyn Fn(&Parts) -> Option<Vec<u8>> + Send + Sync;

impl Principal {
    /// Whose key a request's is; none where nobody's can be told.
    pub(super) fn of(&self, head: &Parts) -> Option<Vec<u8>> {
        match self {
            Self::Of(tell) => tell(head),
            Self::Anyone => Some(Vec::new()),
        }
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Of(_) => "Of",
            Self::Anyone => "Anyone",
        })
    }
}

impl IdempotencyPolicy {
    /// Keeps the keys of each principal apart, so that nobody gets an answer that was given to another.
    ///
    /// The bytes name the principal: an account's number, say, that a layer further out has put into the request's
    /// extensions once it had checked it. A request with a key for which there are none is refused.
    #[must_use]
    pub fn per_principal(
        principal: impl Fn(&Parts) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> IdempotencyBuilder {
        IdempotencyBuilder::new(Principal::Of(Arc::new(principal)))
    }

    /// Gives all callers one set of keys: for a server that has one caller, or callers that trust each other.
    ///
    /// Whoever knows or guesses a key, and its request, gets the answer that was given to another.
    #[must_use]
    pub fn for_all_callers() -> IdempotencyBuilder {
        IdempotencyBuilder::new(Principal::Anyone)
    }

    /// Returns how long an answer is kept and given again.
    #[must_use]
    pub const fn retention(&self) -> Duration {
        self.settings.retention
    }

    /// Returns the header that carries the key.
    #[must_use]
    pub const fn header(&self) -> &HeaderName {
        &self.settings.header
    }
}

impl IdempotencyBuilder {
    fn new(principal: Principal) -> Self {
        Self {
            principal,
            namespace: Cow::Borrowed(""),
            header: IDEMPOTENCY_KEY,
            syntax: KeySyntax::default(),
            longest_key: MAX_KEY_LEN,
            required: false,
            methods: vec![Method::POST, Method::PATCH],
            compared: vec![CONTENT_TYPE],
            kept: KEPT_HEADERS.to_vec(),
            request_limit: 256 * 1024,
            answer_limit: 256 * 1024,
            stored: Stored::default(),
            retention: Duration::from_secs(86_400),
            horizon: Duration::ZERO,
            lease: Duration::from_secs(30),
            on_expiry: OnExpiry::default(),
            indeterminate_status: StatusCode::INTERNAL_SERVER_ERROR,
            on_store_failure: OnStoreFailure::default(),
            store_timeout: Duration::from_secs(2),
            retry_after: Duration::from_secs(1),
            left_behind: 1024,
            documentation: None,
        }
    }

    /// Keeps the keys of this layer apart from those of others in the same store; by default they share them.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<Cow<'static, str>>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Names the header that carries the key, `idempotency-key` by default.
    #[must_use]
    pub fn header(mut self, name: HeaderName) -> Self {
        self.header = name;
        self
    }

    /// Sets in which forms a key is accepted, both by default.
    #[must_use]
    pub const fn syntax(mut self, syntax: KeySyntax) -> Self {
        self.syntax = syntax;
        self
    }

    /// Sets how long a key may be, 255 characters by default and 1024 at most.
    #[must_use]
    pub const fn longest_key(mut self, characters: usize) -> Self {
        self.longest_key = characters;
        self
    }

    /// Refuses requests without a key; by default they are served as if this layer were not there.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the methods whose keys count, POST and PATCH by default; any other method's is ignored.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.methods = methods.into_iter().take(checks::MAX_METHODS + 1).collect();
        self
    }

    /// Sets the request headers that are compared besides method, path, query and body, `content-type` by default.
    ///
    /// Those that differ from one attempt to the next are refused: traces, deadlines, dates, numbers of attempts.
    #[must_use]
    pub fn compare_headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.compared = names.into_iter().take(checks::MAX_HEADERS + 1).collect();
        self
    }

    /// Keeps one more of the answer's headers, besides those that say what the body is and where things are.
    ///
    /// A header that is not kept is missing from an answer that is given again. Of gRPC, it is the trailers too.
    #[must_use]
    pub fn keep_header(mut self, name: HeaderName) -> Self {
        self.kept.push(name);
        self
    }

    /// Sets up to what size a request's body is compared, 256 KiB by default and 16 MiB at most.
    ///
    /// That much is held in memory while the request is read. A larger one is served; its key is then completed without an
    /// answer, since another request could not be told from it, and whoever repeats it is told so.
    #[must_use]
    pub const fn request_limit(mut self, bytes: usize) -> Self {
        self.request_limit = bytes;
        self
    }

    /// Sets up to what size an answer's body is kept, 256 KiB by default and 16 MiB at most.
    ///
    /// The caller gets its answer once it has been stored, so that much is held in memory. A larger one is served; its
    /// key is then completed without it, and whoever repeats the request is told so.
    #[must_use]
    pub const fn answer_limit(mut self, bytes: usize) -> Self {
        self.answer_limit = bytes;
        self
    }

    /// Sets which answers are stored, all by default.
    #[must_use]
    pub const fn stored(mut self, stored: Stored) -> Self {
        self.stored = stored;
        self
    }

    /// Sets how long an answer is kept and given again, a day by default. After that the key is as good as new.
    #[must_use]
    pub const fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// Declares for how long callers may go on trying; a retention that is shorter is then refused.
    ///
    /// A caller that comes back after its key is forgotten has its request run a second time.
    #[must_use]
    pub const fn retry_horizon(mut self, horizon: Duration) -> Self {
        self.horizon = horizon;
        self
    }

    /// Sets how long a key belongs to its runner that says nothing any more, 30 s by default.
    ///
    /// A runner renews its lease three times in that time, so the handler itself may take as long as it likes.
    #[must_use]
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets what to do for a key whose runner is gone without a word, by default nothing.
    ///
    /// [`OnExpiry::RunAgain`] is right where the handler completes the key in its own transaction.
    #[must_use]
    pub const fn on_expiry(mut self, on_expiry: OnExpiry) -> Self {
        self.on_expiry = on_expiry;
        self
    }

    /// Sets the status that says "nobody knows whether it was done": 500 by default, or 409.
    #[must_use]
    pub const fn indeterminate_status(mut self, status: StatusCode) -> Self {
        self.indeterminate_status = status;
        self
    }

    /// Sets what a request gets while the store fails, by default a refusal.
    #[must_use]
    pub const fn on_store_failure(mut self, on_store_failure: OnStoreFailure) -> Self {
        self.on_store_failure = on_store_failure;
        self
    }

    /// Sets how long the store may take for one step, 2 s by default.
    #[must_use]
    pub const fn store_timeout(mut self, timeout: Duration) -> Self {
        self.store_timeout = timeout;
        self
    }

    /// Sets when a caller should ask again whose request is being run, 1 s by default.
    #[must_use]
    pub const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = wait;
        self
    }

    /// Sets how many runs are finished at once after their callers have gone away, 1024 by default.
    ///
    /// Beyond them, and with 0 always, a run ends with its caller: what it has done is then not known, and its lease ends at
    /// once.
    #[must_use]
    pub const fn left_behind(mut self, runs: usize) -> Self {
        self.left_behind = runs;
        self
    }

    /// Says where callers read of the keys: every refusal then links to that page.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses what is out of its range, a retention shorter than the retry horizon, a lease longer than the retention, and
    /// comparing a header that differs from one attempt to the next.
    pub fn build(self) -> Result<IdempotencyPolicy, InvalidSetting> {
        checks::check(&self)?;
        Ok(IdempotencyPolicy { settings: self })
    }
}
