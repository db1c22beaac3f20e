//! The address at the other end of the connection.

use std::net::{IpAddr, SocketAddr};

use http::Extensions;

/// The address at the other end of a request's connection, for a server that is neither axum's nor tonic's: put it into the
/// request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddress(
    /// Address and port.
    pub SocketAddr,
);

/// Finds the address at the other end of a request's connection.
///
/// An IPv4 address in IPv6's clothes (`::ffff:192.0.2.1`) is returned as what it is.
#[must_use]
pub fn peer_address(extensions: &Extensions) -> Option<IpAddr> {
    let own = extensions.get::<PeerAddress>().map(|peer| peer.0);
    let peer = own
        .or_else(|| of_axum(extensions))
        .or_else(|| of_tonic(extensions))?;
    Some(peer.ip().to_canonical())
}

#[cfg(feature = "axum")]
fn of_axum(extensions: &Extensions) -> Option<SocketAddr> {
    let info = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>()?;
    Some(info.0)
}

#[cfg(not(feature = "axum"))]
const fn of_axum(_: &Extensions) -> Option<SocketAddr> {
    None
}

#[cfg(feature = "tonic")]
fn of_tonic(extensions: &Extensions) -> Option<SocketAddr> {
    let info = extensions.get::<tonic::transport::server::TcpConnectInfo>()?;
    info.remote_addr()
}

#[cfg(not(feature = "tonic"))]
const fn of_tonic(_: &Extensions) -> Option<SocketAddr> {
    None
}
