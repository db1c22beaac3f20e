//! What is deferred, and what is kept of it.

use http::HeaderName;
use http::header;
use mamparo_core::InvalidSetting;

use super::state::Later;
use crate::limits::MAX_REQUEST_BYTES;
use crate::machine::Label;
use crate::web::{Judge, NOT_STORED};

/// As many bytes as a body may have that is kept; the rest of [`MAX_REQUEST_BYTES`] is for the head.
pub const MAX_BODY_BYTES: usize = MAX_REQUEST_BYTES - 64 * 1024;

/// As many headers as can be named to be kept, besides those that are anyway.
pub const MAX_HEADERS: usize = 32;

/// Headers that say what a request means, and so are always kept.
static KEPT: [HeaderName; 10] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::USER_AGENT,
    HeaderName::from_static("prefer"),
];

/// What is deferred, and what is kept of it, checked.
///
/// ```
/// use http::StatusCode;
/// use mamparo_durable::defer::DeferPolicy;
/// use mamparo_durable::web::Judge;
///
/// let judge = Judge::builder().field("status").refused_values(["CANCELLED"]).build()?;
/// let policy = DeferPolicy::builder("payment").judge(judge).rejections(true).build()?;
/// # let _ = policy;
/// let nothing = DeferPolicy::builder("payment").build().unwrap_err();
/// assert_eq!(
///     nothing.to_string(),
///     "judge = no refusals is refused: must know some, or rejections or failures be deferred: nothing is otherwise"
/// );
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeferPolicy {
    pub(super) settings: DeferBuilder,
}

/// Which requests get an idempotency key, and how it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeferKeys {
    /// All that have none, in quotes, as a structured field string (RFC 9651 §3.3.3).
    #[default]
    Quoted,
    /// All that have none, as it is, for servers that take the raw value.
    Bare,
    /// None: keys are their callers' own, and what the engine sends after a refusal has one, `{id}#2` and so on, with or without quotes
    /// as the caller's, since it may have to be sent twice. Technical failures of a request without one are not deferred,
    /// unless its method is idempotent or it is proven that the request was never processed.
    Callers,
}

/// Settings of a [`DeferPolicy`].
///
/// | setting | default | bounds | why |
/// |---|---|---|---|
/// | `judge` | knows no refusals | | only the dependency's owner knows its words |
/// | `rejections` | not deferred | | the caller may rather hear at once that its own side is full |
/// | `failures` | not deferred | | needs a dependency that honours keys |
/// | `keys` | made, in quotes | | without one, what was lost can't be sent again |
/// | `headers` | those that say what a request means | 32 more | what is stored is read by others: secrets must not be |
/// | `max_body` | 64 KiB | 1 byte to 192 KiB | as much as a retry replays; a store's row has room for 256 KiB |
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct DeferBuilder {
    pub(super) kind: Label,
    pub(super) judge: Judge,
    pub(super) later: Later,
    pub(super) keys: DeferKeys,
    pub(super) headers: Vec<HeaderName>,
    pub(super) max_body: usize,
}

impl DeferPolicy {
    /// Starts from the defaults. The kind of transaction picks the engine's policy, unless a request [says another](super::DeferAs).
    pub fn builder(kind: impl Into<Label>) -> DeferBuilder {
        DeferBuilder {
            kind: kind.into(),
            judge: Judge::default(),
            later: Later::default(),
            keys: DeferKeys::default(),
            headers: KEPT.to_vec(),
            max_body: 64 * 1024,
        }
    }
}

impl DeferBuilder {
    /// Sets what says which answers are refusals, here and when the engine sends.
    pub fn judge(mut self, judge: Judge) -> Self {
        self.judge = judge;
        self
    }

    /// Defers what the stack refuses to send: a breaker is open, a bulkhead full, a rate used up. Off by default.
    pub const fn rejections(mut self, deferred: bool) -> Self {
        self.later.rejections = deferred;
        self
    }

    /// Defers technical failures: answers that the judge calls technical, resets, timeouts. Off by default.
    pub const fn failures(mut self, deferred: bool) -> Self {
        self.later.failures = deferred;
        self
    }

    /// Sets which requests get a key; in quotes, those that have none, by default.
    pub const fn keys(mut self, keys: DeferKeys) -> Self {
        self.keys = keys;
        self
    }

    /// Keeps these headers too, besides those that say what a request means: `accept`, `content-type`, `if-match`, `prefer` and so on.
    pub fn headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        let more = names.into_iter().take(MAX_HEADERS + 1);
        self.headers = KEPT.iter().cloned().chain(more).collect();
        self
    }

    /// Sets as many bytes as a body may have; 64 KiB by default. What is longer is not sent.
    pub const fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when nothing would ever be deferred, the kind is empty, the body's bound is zero or too large, too many
    /// headers are named, or one that is never stored.
    pub fn build(self) -> Result<DeferPolicy, InvalidSetting> {
        if self.kind.as_str().is_empty() {
            let reason = "must not be empty: it picks the engine's policy";
            return Err(InvalidSetting::new("kind", "\"\"", reason));
        }
        if !self.judge.refuses() && !self.later.rejections && !self.later.failures {
            let reason =
                "must know some, or rejections or failures be deferred: nothing is otherwise";
            return Err(InvalidSetting::new("judge", "no refusals", reason));
        }
        if !(1..=MAX_BODY_BYTES).contains(&self.max_body) {
            let reason =
                "must be from 1 to 196608 bytes: keep a larger body elsewhere and send where";
            return Err(InvalidSetting::new("max_body", self.max_body, reason));
        }
        let more = self.headers.len() - KEPT.len();
        if more > MAX_HEADERS {
            return Err(InvalidSetting::new("headers", more, "must be at most 32"));
        }
        let never = |name: &&HeaderName| NOT_STORED.contains(&name.as_str());
        if let Some(name) = self.headers.iter().find(never) {
            let reason = "must not be a secret, nor what each send has anew: let the stack add it";
            return Err(InvalidSetting::new("headers", name, reason));
        }
        Ok(DeferPolicy { settings: self })
    }
}
