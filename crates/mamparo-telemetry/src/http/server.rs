//! The host and port that are called.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Uri};

/// Where a request goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) address: Arc<str>,
    pub(crate) port: Option<u16>,
}

/// Takes addresses apart, and remembers the first: most dependencies have only one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers {
    first: OnceLock<Parts>,
}

/// An authority taken apart.
#[derive(Clone, Debug)]
struct Parts {
    authority: Box<str>,
    address: Arc<str>,
    port: Option<u16>,
}

impl Servers {
    /// Reads it from the address, or from `Host` where that is only a path.
    pub(crate) fn find(&self, uri: &Uri, headers: &HeaderMap) -> Option<Server> {
        let by_default = default_port(uri.scheme());
        if let Some(authority) = uri.authority() {
            return Some(self.look_up(authority).server(by_default));
        }
        let host = headers.get(HOST)?;
        let authority = Authority::try_from(host.as_bytes()).ok()?;
        Some(Parts::of(&authority).server(by_default))
    }

    fn look_up(&self, authority: &Authority) -> Cow<'_, Parts> {
        let first = self.first.get_or_init(|| Parts::of(authority));
        if *first.authority == *authority.as_str() {
            Cow::Borrowed(first)
        } else {
            Cow::Owned(Parts::of(authority))
        }
    }
}

impl Parts {
    fn of(authority: &Authority) -> Self {
        // An IPv6 address stands in brackets in a URL, and without them as an attribute.
        let host = authority.host();
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        Self {
            authority: authority.as_str().into(),
            address: bare.unwrap_or(host).into(),
            port: authority.port_u16(),
        }
    }

    fn server(&self, by_default: Option<u16>) -> Server {
        Server {
            address: Arc::clone(&self.address),
            port: self.port.or(by_default),
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
