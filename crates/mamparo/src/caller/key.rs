//! Who is one caller.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Request};

use super::TrustedProxies;
use super::address::peer_address;

/// Who sends a request, as your authentication found out: it puts this into the request's extensions.
///
/// It stands further out than what asks for it. The name is neither logged nor shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Names who sends a request.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Principal")
    }
}

/// Says by what callers are told apart; see the [module](super).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerKey {
    by: By,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    Nothing,
    Address(Arc<TrustedProxies>),
    Principal,
    Header(HeaderName),
}

/// One caller, for the time of a look-up.
#[derive(Clone, Debug)]
pub struct Who {
    is: Is,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Is {
    Address(IpAddr),
    Principal(Principal),
    Value(HeaderValue),
}

impl CallerKey {
    /// Tells nobody apart: all callers are one.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { by: By::Nothing }
    }

    /// Tells callers apart by their addresses, as the proxies that are trusted say.
    #[must_use]
    pub fn address(proxies: TrustedProxies) -> Self {
        Self {
            by: By::Address(Arc::new(proxies)),
        }
    }

    /// Tells callers apart by the [`Principal`] among the request's extensions.
    #[must_use]
    pub const fn principal() -> Self {
        Self { by: By::Principal }
    }

    /// Tells callers apart by a header; whoever may write what they want there has as many limits as they want.
    #[must_use]
    pub const fn header(name: HeaderName) -> Self {
        Self {
            by: By::Header(name),
        }
    }

    /// Returns who sends a request, if that is known.
    #[must_use]
    pub fn of<B>(&self, request: &Request<B>) -> Option<Who> {
        let is = match &self.by {
            By::Nothing => return None,
            By::Address(proxies) => {
                let peer = peer_address(request.extensions())?;
                Is::Address(network(proxies.client(peer, request.headers())))
            }
            By::Principal => Is::Principal(request.extensions().get::<Principal>()?.clone()),
            By::Header(name) => Is::Value(request.headers().get(name)?.clone()),
        };
        Some(Who { is })
    }
}

impl Hash for Who {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is.hash(state);
    }
}

/// Whoever has an address of IPv6 has 2⁶⁴ of them.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let prefix = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
    }
}
