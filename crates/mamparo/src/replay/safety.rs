//! What makes a request safe to send again.

use mamparo_core::grpc::{Code, Codes};
use mamparo_core::{Resend, Verdict};

/// What makes a request safe to send again, or not.
///
/// ```
/// use mamparo::replay::Safety;
/// use mamparo_core::Resend;
///
/// assert!(Safety::UNSAFE.allows(Resend::Always));
/// assert!(!Safety::UNSAFE.allows(Resend::IfIdempotent));
/// assert!(Safety::UNSAFE.with_key(true).allows(Resend::IfIdempotent));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Safety {
    idempotent: bool,
    keyed: bool,
    early_data: bool,
    listed: Codes,
    /// On which statuses it is sent again where nobody knows what became of it.
    in_doubt: Codes,
}

impl Safety {
    /// Sent twice, it may take effect twice.
    pub const UNSAFE: Self = Self {
        idempotent: false,
        keyed: false,
        early_data: false,
        listed: Codes::NONE,
        in_doubt: Codes::NONE,
    };

    /// Sent twice, it takes effect once.
    pub const IDEMPOTENT: Self = Self {
        idempotent: true,
        ..Self::UNSAFE
    };

    /// Notes whether the request carries an idempotency key.
    #[must_use]
    pub const fn with_key(mut self, keyed: bool) -> Self {
        self.keyed = keyed;
        self
    }

    /// Notes whether the request came as early data, on somebody else's behalf (RFC 8470 §5.1).
    #[must_use]
    pub const fn with_early_data(mut self, early_data: bool) -> Self {
        self.early_data = early_data;
        self
    }

    /// Notes on which statuses of gRPC the request's method is sent again (gRFC A6, `retryableStatusCodes`).
    #[must_use]
    pub const fn with_listed(mut self, codes: Codes) -> Self {
        self.listed = codes;
        self
    }

    /// Notes what a plan says that was written for the request's method.
    ///
    /// What it lists it also allows where nobody knows what became of the request, as after a connection broke: gRPC gives
    /// both the same status. An attempt that took too long counts as `UNAVAILABLE` too, since gRPC has no such limit.
    #[must_use]
    pub const fn with_plan(mut self, codes: Codes) -> Self {
        self.in_doubt = if codes.contains(Code::Unavailable) {
            codes.with(Code::DeadlineExceeded)
        } else {
            codes
        };
        self.with_listed(codes)
    }

    /// Tells whether sending the request twice takes effect once, by its nature or by its key.
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        self.idempotent || self.keyed
    }

    /// Tells whether the request fulfils what a verdict asks for before it may be sent again.
    #[must_use]
    pub const fn allows(self, resend: Resend) -> bool {
        match resend {
            Resend::Never => false,
            Resend::IfKeyed => self.keyed,
            Resend::IfIdempotent => {
                self.is_idempotent() || self.in_doubt.contains(Code::Unavailable)
            }
            Resend::IfListed(code) => self.listed.contains(code),
            Resend::UnlessEarlyData => !self.early_data,
            Resend::Always => true,
        }
    }

    /// Tells the same of a verdict, which may say by which status of gRPC the request is in doubt.
    #[must_use]
    pub const fn allows_after(self, verdict: Verdict) -> bool {
        match (verdict.resend(), verdict.code()) {
            (Resend::IfIdempotent, Some(code)) => {
                self.is_idempotent() || self.in_doubt.contains(code)
            }
            (resend, _) => self.allows(resend),
        }
    }
}
