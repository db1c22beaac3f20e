//! Which requests get a key, and how it is written.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method};
use mamparo_core::InvalidSetting;
use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_core::http::IDEMPOTENCY_KEY;

/// As many methods as can be named.
pub const MAX_METHODS: usize = 16;

/// Which requests get a key, under which name, in which form.
///
/// ```
/// use http::HeaderName;
/// use mamparo::idempotency_key::{KeyForm, KeyPolicy};
///
/// let policy = KeyPolicy::builder()
///     .header(HeaderName::from_static("x-idempotency-key"))
///     .form(KeyForm::Bare)
///     .build()?;
/// # let _ = policy;
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyPolicy {
    pub(super) settings: KeyBuilder,
}

/// How a key is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyForm {
    /// In quotes, as a structured field string (RFC 9651 §3.3.3).
    #[default]
    Quoted,
    /// As it is, for servers that take the raw value.
    Bare,
}

/// Settings of a [`KeyPolicy`].
#[derive(Clone, Debug)]
pub struct KeyBuilder {
    pub(super) off: bool,
    pub(super) header: HeaderName,
    pub(super) form: KeyForm,
    pub(super) methods: Vec<Method>,
    pub(super) source: Option<Source>,
    pub(super) wall_clock: Arc<dyn WallClock>,
}

/// Makes keys from requests.
#[derive(Clone)]
pub(super) struct Source(Arc<MakeKey>);

type MakeKey = dyn Fn(&Parts) -> Option<HeaderValue> + Send + Sync;

impl Source {
    pub(super) fn key(&self, head: &Parts) -> Option<HeaderValue> {
        (self.0)(head)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl KeyPolicy {
    /// Starts from the defaults.
    #[must_use]
    pub fn builder() -> KeyBuilder {
        KeyBuilder {
            off: false,
            header: IDEMPOTENCY_KEY,
            form: KeyForm::default(),
            methods: vec![Method::POST, Method::PATCH],
            source: None,
            wall_clock: Arc::new(SystemClock),
        }
    }

    /// Adds no key: for a dependency that does not honour one.
    #[must_use]
    pub fn off() -> Self {
        let settings = KeyBuilder {
            off: true,
            ..Self::builder()
        };
        Self { settings }
    }

    /// Returns the name of the header that keys are written to; none when no keys are given.
    #[must_use]
    pub fn header(&self) -> Option<&HeaderName> {
        (!self.settings.off).then_some(&self.settings.header)
    }
}

impl Default for KeyPolicy {
    fn default() -> Self {
        Self {
            settings: Self::builder(),
        }
    }
}

impl KeyBuilder {
    /// Names the header, `idempotency-key` by default.
    ///
    /// A [`Stack`](crate::stack::Stack) tells the retry's classifier; by hand, tell it too:
    /// [`HttpBuilder::key_header`](mamparo_core::http::HttpBuilder::key_header).
    #[must_use]
    pub fn header(mut self, name: HeaderName) -> Self {
        self.header = name;
        self
    }

    /// Sets how the key is written, in quotes by default.
    #[must_use]
    pub const fn form(mut self, form: KeyForm) -> Self {
        self.form = form;
        self
    }

    /// Sets the methods whose requests get a key, POST and PATCH by default.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.methods = methods.into_iter().take(MAX_METHODS + 1).collect();
        self
    }

    /// Makes keys from requests, such as from an order's number: then a repetition by another process is recognised too.
    ///
    /// The value is written as it is, in whatever form; a request for which there is none gets a random key.
    ///
    /// ```
    /// use http::HeaderValue;
    /// use mamparo::idempotency_key::KeyPolicy;
    ///
    /// #[derive(Clone)]
    /// struct Order(u64);
    ///
    /// let policy = KeyPolicy::builder()
    ///     .keys(|head| {
    ///         let order = head.extensions.get::<Order>()?;
    ///         HeaderValue::try_from(format!("\"order-{}\"", order.0)).ok()
    ///     })
    ///     .build()?;
    /// # let _ = policy;
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    #[must_use]
    pub fn keys(
        mut self,
        make: impl Fn(&Parts) -> Option<HeaderValue> + Send + Sync + 'static,
    ) -> Self {
        self.source = Some(Source(Arc::new(make)));
        self
    }

    /// Sets the clock that the key's time comes from.
    #[must_use]
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.wall_clock = Arc::new(clock);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses an empty list of methods, and one of more than 16.
    pub fn build(self) -> Result<KeyPolicy, InvalidSetting> {
        let count = self.methods.len();
        if count == 0 || count > MAX_METHODS {
            return Err(InvalidSetting::new(
                "methods",
                count,
                "must name from 1 to 16 methods: to add no key use `KeyPolicy::off`",
            ));
        }
        Ok(KeyPolicy { settings: self })
    }
}
