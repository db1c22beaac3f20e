//! What a request is worth, and when it arrived.

use std::fmt;

use http::{HeaderName, HeaderValue, Request};
use mamparo_core::CallContext;
use mamparo_core::clock::Instant;

/// What a request is worth: of two, the lower is shed first.
///
/// ```
/// use mamparo::load_shed::Priority;
///
/// assert!(Priority::Critical > Priority::Normal);
/// assert_eq!(Priority::named("high"), Some(Priority::High));
/// assert_eq!(Priority::named("99999"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a policy has one share for each of them"
)]
pub enum Priority {
    /// Nobody waits for it, or it can be done later: a batch, a prefetch.
    Sheddable,
    /// Somebody waits for it.
    Normal,
    /// Somebody waits for it, and its loss is seen.
    High,
    /// Its loss costs: a payment.
    Critical,
}

impl Priority {
    /// How many there are.
    pub(super) const COUNT: usize = 4;

    /// Returns the priority of that name, lower case.
    #[must_use]
    pub const fn named(name: &str) -> Option<Self> {
        Some(match name.as_bytes() {
            b"sheddable" => Self::Sheddable,
            b"normal" => Self::Normal,
            b"high" => Self::High,
            b"critical" => Self::Critical,
            _ => return None,
        })
    }

    /// Returns the name used in headers, metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sheddable => "sheddable",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// Says what a request is worth, and when it arrived.
pub trait Assess<Req>: Clone + Send + Sync + 'static {
    /// Returns what it is worth; where all requests are worth the same, none.
    fn priority(&self, request: &Req) -> Option<Priority>;

    /// Returns when it arrived: by default, when its operation began, where an outer layer has noted that.
    fn arrived(&self, request: &Req) -> Option<Instant> {
        let _ = request;
        CallContext::current().started()
    }
}

/// All requests are worth the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllEqual;

impl<Req> Assess<Req> for AllEqual {
    #[inline]
    fn priority(&self, _: &Req) -> Option<Priority> {
        None
    }
}

/// A function says what a request is worth.
#[derive(Clone, Copy)]
pub struct ByPriority<F>(pub(super) F);

impl<F, Req> Assess<Req> for ByPriority<F>
where
    F: Fn(&Req) -> Priority + Clone + Send + Sync + 'static,
{
    #[inline]
    fn priority(&self, request: &Req) -> Option<Priority> {
        Some(self.0(request))
    }
}

/// A header of the request says what it is worth, and is believed only so far.
#[derive(Clone, Debug)]
pub struct ByHeader {
    pub(super) name: HeaderName,
    pub(super) at_most: Priority,
}

impl<B> Assess<Request<B>> for ByHeader {
    /// What can't be read is worth the least, so that nobody gains by writing nonsense; what says nothing is normal.
    fn priority(&self, request: &Request<B>) -> Option<Priority> {
        let read = |value: &HeaderValue| {
            let name = value.to_str().ok();
            name.and_then(Priority::named)
                .unwrap_or(Priority::Sheddable)
        };
        // Of several, the least: whoever is further in may lower a priority, and nobody may raise one.
        let said = request.headers().get_all(&self.name).iter().map(read).min();
        Some(said.unwrap_or(Priority::Normal).min(self.at_most))
    }
}

/// A function says when a request arrived.
#[derive(Clone, Copy)]
pub struct ArrivedAt<A, F> {
    pub(super) assess: A,
    pub(super) arrived: F,
}

impl<A, F, Req> Assess<Req> for ArrivedAt<A, F>
where
    A: Assess<Req>,
    F: Fn(&Req) -> Option<Instant> + Clone + Send + Sync + 'static,
{
    #[inline]
    fn priority(&self, request: &Req) -> Option<Priority> {
        self.assess.priority(request)
    }

    #[inline]
    fn arrived(&self, request: &Req) -> Option<Instant> {
        (self.arrived)(request)
    }
}

impl<F> fmt::Debug for ByPriority<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByPriority")
    }
}

impl<A: fmt::Debug, F> fmt::Debug for ArrivedAt<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArrivedAt").field(&self.assess).finish()
    }
}
