//! The host and port that are called.

use std::sync::Arc;

use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Uri};

/// Where a request goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) address: Arc<str>,
    pub(crate) port: Option<u16>,
}

impl Server {
    /// Reads it from the address, or from `Host` where that is only a path.
    pub(crate) fn of(uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let by_default = default_port(uri.scheme());
        if let Some(authority) = uri.authority() {
            return Some(Self::from_authority(authority, by_default));
        }
        let host = headers.get(HOST)?;
        let authority = Authority::try_from(host.as_bytes()).ok()?;
        Some(Self::from_authority(&authority, by_default))
    }

    fn from_authority(authority: &Authority, by_default: Option<u16>) -> Self {
        // An IPv6 address stands in brackets in a URL, and without them as an attribute.
        let host = authority.host();
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        Self {
            address: bare.unwrap_or(host).into(),
            port: authority.port_u16().or(by_default),
        }
    }
}

fn default_port(scheme: Option<&Scheme>) -> Option<u16> {
    match scheme?.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}
