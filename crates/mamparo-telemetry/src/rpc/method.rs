//! The method of an RPC.

use crate::names::{MAX_NAME_LEN, Name};
use crate::semconv::{METHOD_OTHER, RPC_SYSTEM_GRPC};

/// A method, as spans and metrics name it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Method {
    Known(&'static Name),
    /// One of those that are not told apart.
    Other,
}

impl Method {
    /// Reads the method that a client calls: its code was generated, so it knows what it calls.
    pub(crate) fn called(path: &str) -> Self {
        let known = well_formed(path).and_then(Name::keep);
        known.map_or(Self::Other, Self::Known)
    }

    /// The value of `rpc.method`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Known(name) => name.as_str(),
            Self::Other => METHOD_OTHER,
        }
    }

    /// The name of a call's span.
    pub(crate) const fn span_name(self) -> &'static str {
        match self {
            Self::Known(name) => name.as_str(),
            Self::Other => RPC_SYSTEM_GRPC,
        }
    }

    /// The name of an attempt's span.
    pub(crate) fn attempt_name(self) -> &'static str {
        match self {
            Self::Known(name) => name.of_attempt(),
            Self::Other => "Attempt.grpc",
        }
    }
}

/// Returns the method as it was sent, without the leading slash.
pub(crate) fn as_sent(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

/// Takes a path apart that is one of gRPC's, `/package.Service/Method`, and returns it without the leading slash.
pub(crate) fn well_formed(path: &str) -> Option<&str> {
    let method = path.strip_prefix('/')?;
    let (service, name) = method.split_once('/')?;
    let is_word = |text: &str, more: &[u8]| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || more.contains(&byte);
        !text.is_empty() && text.bytes().all(fits)
    };
    let fits = is_word(service, b".-") && is_word(name, b"-") && method.len() <= MAX_NAME_LEN;
    fits.then_some(method)
}
