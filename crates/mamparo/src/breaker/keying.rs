//! Which breaker a request belongs to.

use std::fmt;

use http::Request;
use http::header::HOST;
use http::uri::Authority;

/// Says which breaker a request belongs to.
pub trait KeyOf<Req>: Clone + Send + Sync + 'static {
    /// The key; of a long one only a part is kept, and a hash of the rest.
    type Key: AsRef<str>;

    /// Returns the request's key. Those without one have a breaker in common.
    fn key(&self, request: &Req) -> Option<Self::Key>;
}

/// One breaker for all requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct One;

impl<Req> KeyOf<Req> for One {
    type Key = &'static str;

    #[inline]
    fn key(&self, _: &Req) -> Option<&'static str> {
        None
    }
}

/// A breaker for each key that a function finds in a request.
#[derive(Clone, Copy)]
pub struct By<F>(pub(super) F);

impl<F, Req, K> KeyOf<Req> for By<F>
where
    F: Fn(&Req) -> Option<K> + Clone + Send + Sync + 'static,
    K: AsRef<str>,
{
    type Key = K;

    #[inline]
    fn key(&self, request: &Req) -> Option<K> {
        (self.0)(request)
    }
}

impl<F> fmt::Debug for By<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("By").finish_non_exhaustive()
    }
}

/// A breaker for each host and port that requests are for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByAuthority;

/// A host and a port, without the user's name and password that an address may hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host(Kept);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kept {
    /// As it stands in the request.
    Whole(Authority),
    /// In lower case, since case makes no difference to a host.
    Lower(String),
}

impl Host {
    fn new(authority: Authority) -> Self {
        if authority
            .as_str()
            .bytes()
            .any(|byte| byte.is_ascii_uppercase())
        {
            return Self(Kept::Lower(host(authority.as_str()).to_ascii_lowercase()));
        }
        Self(Kept::Whole(authority))
    }
}

impl AsRef<str> for Host {
    fn as_ref(&self) -> &str {
        match &self.0 {
            Kept::Whole(authority) => host(authority.as_str()),
            Kept::Lower(host) => host,
        }
    }
}

fn host(authority: &str) -> &str {
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

impl<B> KeyOf<Request<B>> for ByAuthority {
    type Key = Host;

    fn key(&self, request: &Request<B>) -> Option<Host> {
        let of_uri = request.uri().authority().cloned();
        let of_header = || {
            let value = request.headers().get(HOST)?;
            Authority::try_from(value.as_bytes()).ok()
        };
        of_uri.or_else(of_header).map(Host::new)
    }
}
