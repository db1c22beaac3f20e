//! What one attempt's result means.

use std::time::Duration;

use crate::grpc::Code;

const NO_HINT: u64 = u64::MAX;

/// What one attempt's result means, said once and heard by retry, breaker, budget, hedge and telemetry.
///
/// ```
/// use mamparo_core::{Class, Kind, Resend, Verdict};
/// use std::time::Duration;
///
/// let busy = Verdict::failure(Kind::Throttled, Resend::IfIdempotent).after(Duration::from_secs(2));
/// assert_eq!(busy.class(), Class::Failure(Kind::Throttled));
/// assert_eq!(busy.hint(), Some(Duration::from_secs(2)));
/// assert!(busy.blames_dependency());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Verdict {
    class: Class,
    resend: Resend,
    /// In nanoseconds; [`NO_HINT`] for none. A verdict lies in every guarded body and is moved with it.
    hint: u64,
    exact: bool,
    once: bool,
    forbidden: bool,
    code: Option<Code>,
}

/// Whether an attempt counts, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "every reader of a verdict must say what it does with each class"
)]
pub enum Class {
    /// The dependency did what it was asked.
    Success,
    /// The attempt failed.
    Failure(Kind),
    /// It says nothing of the dependency: cancelled by the caller, or refused by us before it was sent.
    Ignored,
}

/// How an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// No connection: the request was never sent.
    Connect,
    /// The connection broke while the request or its answer was on the way.
    Reset,
    /// No answer in time.
    Timeout,
    /// The dependency asks for fewer requests.
    Throttled,
    /// The dependency, or a proxy before it, can't serve now.
    Unavailable,
    /// The dependency failed inside.
    Server,
    /// The request is at fault; the dependency did its part.
    Client,
    /// None of the others.
    Other,
}

impl Kind {
    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::Server => "server",
            Self::Client => "client",
            Self::Other => "other",
        }
    }
}

/// What must be true of a request for it to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever replays a request must answer for each of them"
)]
pub enum Resend {
    /// Nothing: it is not sent again.
    Never,
    /// It carries an idempotency key that the dependency honours.
    IfKeyed,
    /// It is idempotent, by its method or by its key.
    IfIdempotent,
    /// Its method lists this status of gRPC as one to send it again on (gRFC A6).
    IfListed(Code),
    /// It was not sent as early data on somebody else's behalf (RFC 8470 §5.2).
    UnlessEarlyData,
    /// Nothing: there is proof that it was never processed.
    Always,
}

impl Verdict {
    /// The dependency did what it was asked.
    pub const SUCCESS: Self = Self::new(Class::Success);

    /// The result says nothing of the dependency.
    pub const IGNORED: Self = Self::new(Class::Ignored);

    const fn new(class: Class) -> Self {
        Self {
            class,
            resend: Resend::Never,
            hint: NO_HINT,
            exact: false,
            once: false,
            forbidden: false,
            code: None,
        }
    }

    /// Says that the attempt failed, and what must be true for it to be sent again.
    pub const fn failure(kind: Kind, resend: Resend) -> Self {
        Self {
            resend,
            ..Self::new(Class::Failure(kind))
        }
    }

    /// Adds the wait that the dependency asked for.
    pub const fn after(mut self, hint: Duration) -> Self {
        let nanos = hint.as_nanos();
        self.hint = if nanos < NO_HINT as u128 {
            nanos as u64
        } else {
            NO_HINT - 1
        };
        self
    }

    /// Adds the wait that the dependency asked for to the millisecond: neither jitter nor a backoff lengthens it.
    pub const fn after_exactly(mut self, wait: Duration) -> Self {
        self.exact = true;
        self.after(wait)
    }

    /// Allows one resend for this verdict, however many attempts there are.
    pub const fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Replaces what must be true for the request to be sent again.
    pub const fn with_resend(mut self, resend: Resend) -> Self {
        self.resend = resend;
        self
    }

    /// Says that the dependency, or a retry nearer to it, forbids another resend.
    pub const fn forbidden(mut self) -> Self {
        self.resend = Resend::Never;
        self.forbidden = true;
        self
    }

    /// Adds the status of gRPC that it was read from, for whoever records the call.
    pub const fn with_code(mut self, code: Code) -> Self {
        self.code = Some(code);
        self
    }

    /// Returns the class.
    #[must_use]
    pub const fn class(self) -> Class {
        self.class
    }

    /// Returns what must be true for the request to be sent again.
    #[must_use]
    pub const fn resend(self) -> Resend {
        self.resend
    }

    /// Returns the wait that the dependency asked for.
    #[must_use]
    pub const fn hint(self) -> Option<Duration> {
        if self.hint == NO_HINT {
            return None;
        }
        Some(Duration::from_nanos(self.hint))
    }

    /// Tells whether the wait that the dependency asked for is exact.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.exact
    }

    /// Tells whether this verdict allows one resend at most.
    #[must_use]
    pub const fn is_once(self) -> bool {
        self.once
    }

    /// Tells whether the dependency, or a retry nearer to it, forbids another resend.
    #[must_use]
    pub const fn is_forbidden(self) -> bool {
        self.forbidden
    }

    /// Returns the status of gRPC that it was read from, if it was.
    #[must_use]
    pub const fn code(self) -> Option<Code> {
        self.code
    }

    /// Returns how the attempt failed, if it did.
    #[must_use]
    pub const fn kind(self) -> Option<Kind> {
        match self.class {
            Class::Failure(kind) => Some(kind),
            Class::Success | Class::Ignored => None,
        }
    }

    /// Tells whether the failure is the dependency's: a request at fault is not.
    #[must_use]
    pub const fn blames_dependency(self) -> bool {
        match self.class {
            Class::Failure(kind) => !matches!(kind, Kind::Client),
            Class::Success | Class::Ignored => false,
        }
    }

    /// Returns the name used in metrics and logs: `success`, `ignored` or the failure's kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self.class {
            Class::Success => "success",
            Class::Failure(kind) => kind.as_str(),
            Class::Ignored => "ignored",
        }
    }
}
