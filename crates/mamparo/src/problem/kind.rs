//! The types of problems.

use http::StatusCode;

/// Our own types; `docs/problems/` has a file for each.
macro_rules! ours {
    ($name:literal) => {
        concat!("urn:mamparo:problem:", $name)
    };
}

/// The registry of RFC 9457 §4.2, for which draft-ietf-httpapi-ratelimit-headers-10 §6 asks for three types.
macro_rules! drafts {
    ($name:literal) => {
        concat!("https://iana.org/assignments/http-problem-types#", $name)
    };
}

/// A type of problem (RFC 9457 §3.1): a URI that stays the same, a title, and the status that it goes with.
///
/// ```
/// use http::StatusCode;
/// use mamparo::problem::{Problem, ProblemType};
///
/// const OUT_OF_STOCK: ProblemType = ProblemType::new(
///     "https://example.com/problems/out-of-stock",
///     "Out of Stock",
///     StatusCode::CONFLICT,
/// );
/// let problem = Problem::new(OUT_OF_STOCK).with_member("item", "book-1");
/// assert_eq!(problem.status(), 409);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemType {
    uri: &'static str,
    title: &'static str,
    status: StatusCode,
}

impl ProblemType {
    /// The caller used up what it may have, in a while there is more; of draft-ietf-httpapi-ratelimit-headers-10 §6.
    pub const QUOTA_EXCEEDED: Self = Self::new(
        drafts!("quota-exceeded"),
        "Quota Exceeded",
        StatusCode::TOO_MANY_REQUESTS,
    );

    /// The service can take less than it usually does; of draft-ietf-httpapi-ratelimit-headers-10 §6.
    pub const TEMPORARY_REDUCED_CAPACITY: Self = Self::new(
        drafts!("temporary-reduced-capacity"),
        "Temporary Reduced Capacity",
        StatusCode::SERVICE_UNAVAILABLE,
    );

    /// The caller's pattern of requests is not that of its kind; of draft-ietf-httpapi-ratelimit-headers-10 §6.
    ///
    /// No layer says so: it is for a handler, or a layer of yours, that recognizes one.
    pub const ABNORMAL_USAGE_DETECTED: Self = Self::new(
        drafts!("abnormal-usage-detected"),
        "Abnormal Usage Detected",
        StatusCode::TOO_MANY_REQUESTS,
    );

    /// A service behind this one did not answer, or said "not now".
    pub const DEPENDENCY_UNAVAILABLE: Self = Self::new(
        ours!("dependency-unavailable"),
        "Dependency Unavailable",
        StatusCode::SERVICE_UNAVAILABLE,
    );

    /// A service behind this one failed.
    pub const DEPENDENCY_FAILED: Self = Self::new(
        ours!("dependency-failed"),
        "Dependency Failed",
        StatusCode::BAD_GATEWAY,
    );

    /// The service is starting or stopping.
    pub const NOT_READY: Self = Self::new(
        ours!("not-ready"),
        "Not Ready",
        StatusCode::SERVICE_UNAVAILABLE,
    );

    /// Our own types, each of which has a file in `docs/problems/`.
    pub const OURS: &'static [Self] = &[
        Self::DEPENDENCY_UNAVAILABLE,
        Self::DEPENDENCY_FAILED,
        Self::NOT_READY,
    ];

    /// Makes a type of your own; an absolute URI is recommended, best one under which people find what it means.
    #[must_use]
    pub const fn new(uri: &'static str, title: &'static str, status: StatusCode) -> Self {
        Self { uri, title, status }
    }

    /// Returns the URI that names it.
    #[must_use]
    pub const fn uri(self) -> &'static str {
        self.uri
    }

    /// Returns its title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.title
    }

    /// Returns the status that it goes with.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.status
    }
}
