//! What proxies say of the client, as far as they are trusted.

use std::net::{IpAddr, SocketAddr};

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use mamparo_core::InvalidSetting;

/// As many entries of the field are looked at: from more proxies in a row than that nothing is believed.
pub const MAX_FORWARDED: usize = 32;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies that stand before a server, and the one field in which they say for whom they ask.
///
/// One field, because a proxy writes one and hands others on as they came: who trusts two trusts the client with one of
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    field: HeaderName,
}

impl TrustedProxies {
    /// Trusts no proxy: the connection's own address is the caller's.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            networks: Vec::new(),
            field: X_FORWARDED_FOR,
        }
    }

    /// Trusts proxies in these networks, that write `X-Forwarded-For`; such as `10.0.0.0/8`, or an address.
    ///
    /// # Errors
    ///
    /// Refuses what is neither a network nor an address, and a network of all addresses.
    pub fn x_forwarded_for<N: AsRef<str>>(
        networks: impl IntoIterator<Item = N>,
    ) -> Result<Self, InvalidSetting> {
        Self::new(networks, X_FORWARDED_FOR)
    }

    /// Trusts proxies in these networks, that write `Forwarded` (RFC 7239).
    ///
    /// # Errors
    ///
    /// Refuses what is neither a network nor an address, and a network of all addresses.
    pub fn forwarded<N: AsRef<str>>(
        networks: impl IntoIterator<Item = N>,
    ) -> Result<Self, InvalidSetting> {
        Self::new(networks, FORWARDED)
    }

    fn new<N: AsRef<str>>(
        networks: impl IntoIterator<Item = N>,
        field: HeaderName,
    ) -> Result<Self, InvalidSetting> {
        let networks = networks.into_iter().map(|text| network(text.as_ref()));
        Ok(Self {
            networks: networks.collect::<Result<_, _>>()?,
            field,
        })
    }

    /// Tells whether an address is one of a trusted proxy.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|net| net.contains(&address))
    }

    /// Returns the client's address, of a request that came from `peer`.
    ///
    /// What is no address (`unknown`, a hidden name) ends the search: the proxy that wrote it is the last that is known.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        // Most servers stand behind no proxy, or behind one.
        if !self.trusts(client) {
            return client;
        }
        let lines = headers.get_all(&self.field).iter().rev();
        let entries = lines.flat_map(|line| entries(line).rev());
        for entry in entries.take(MAX_FORWARDED) {
            let found = match self.field == FORWARDED {
                true => forwarded_for(entry).and_then(node),
                false => node(entry),
            };
            let Some(address) = found else {
                return client;
            };
            client = address;
            if !self.trusts(client) {
                return client;
            }
        }
        client
    }
}

fn network(text: &str) -> Result<IpNet, InvalidSetting> {
    let refused = |reason| Err(InvalidSetting::new("trusted_proxies", text, reason));
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    match text.parse::<IpNet>().or_else(|_| address()) {
        Ok(net) if net.prefix_len() == 0 => {
            refused("must not be all addresses: whoever connects could say who they are")
        }
        Ok(net) => Ok(net.trunc()),
        Err(_) => refused("must be a network such as 10.0.0.0/8, or an address"),
    }
}

/// The entries of a line, split at commas that stand in no quotes; of a line with unprintable characters none.
fn entries(line: &HeaderValue) -> impl DoubleEndedIterator<Item = &str> {
    let text = line.to_str().unwrap_or("\"");
    let mut quoted = false;
    let mut starts = vec![0];
    let mut escaped = false;
    for (at, c) in text.bytes().enumerate() {
        match c {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => starts.push(at + 1),
            _ => {}
        }
    }
    starts.push(text.len() + 1);
    let bounds: Vec<_> = starts
        .windows(2)
        .map(|pair| (pair[0], pair[1] - 1))
        .collect();
    bounds
        .into_iter()
        .map(move |(from, to)| text[from..to].trim())
}

/// The `for` parameter of an element (RFC 7239 §4).
fn forwarded_for(element: &str) -> Option<&str> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut named = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    let (_, value) = named.next()?;
    // Two of them are malformed (§4): neither is believed.
    match named.next() {
        None => Some(value.trim()),
        Some(_) => None,
    }
}

/// An address with or without port, in any of the forms that are seen: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`,
/// `[2001:db8::1]:80`, with quotes around it or not (RFC 7239 §6).
fn node(text: &str) -> Option<IpAddr> {
    let unquoted = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let text = unquoted.unwrap_or(text);
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    address
        .or_else(with_port)
        .map(|address| address.to_canonical())
}
