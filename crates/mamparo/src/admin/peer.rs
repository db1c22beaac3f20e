//! Who asks, as far as axum knows.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::extract::ConnectInfo;
use http::Extensions;

/// The bits of an IPv6 address that one host has to itself: it may use any address below them.
const HOST: u128 = u64::MAX as u128;

/// An address, or a network of them; none where axum was not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer(Option<IpAddr>);

impl Peer {
    pub(super) fn of(extensions: &Extensions) -> Self {
        let told = extensions.get::<ConnectInfo<SocketAddr>>();
        Self(told.map(|ConnectInfo(address)| network(address.ip())))
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !HOST).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_a_mapped_address_is_one_of_ipv4() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
