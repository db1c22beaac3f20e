//! Who sends a request: for a limit of each caller's own.
//!
//! | [`CallerKey`] | who is one caller |
//! |---|---|
//! | [`address`](CallerKey::address) | an address, as far as proxies are trusted; of IPv6 its /64, which is one customer |
//! | [`principal`](CallerKey::principal) | the [`Principal`] that your authentication put into the request's extensions |
//! | [`header`](CallerKey::header) | the value of a header, such as an API key that somebody checks |
//!
//! A request of which that is not known has no key: all of those are one caller together.
//!
//! # Behind proxies
//!
//! What `X-Forwarded-For` or `Forwarded` (RFC 7239) say is written by whoever wants to. [`TrustedProxies`] reads the one
//! field that its proxies write, from its end, where the nearest has written: as long as an address is one of the
//! proxies', the one before it is believed. What a client wrote itself stands further left and is never reached. Without
//! trusted proxies, the connection's own address is the caller's.
//!
//! The connection's address is a [`PeerAddress`] among the request's extensions, or with features `axum` and `tonic` what
//! those put there: axum's `ConnectInfo<SocketAddr>` (serve with `into_make_service_with_connect_info`), tonic's
//! `TcpConnectInfo`.
//!
//! ```
//! use http::{HeaderMap, HeaderValue};
//! use mamparo::caller::TrustedProxies;
//! use std::net::IpAddr;
//!
//! let proxies = TrustedProxies::x_forwarded_for(["10.0.0.0/8"])?;
//! let mut headers = HeaderMap::new();
//! headers.insert("x-forwarded-for", HeaderValue::from_static("1.1.1.1, 203.0.113.7, 10.0.0.3"));
//! let balancer: IpAddr = "10.0.0.2".parse()?;
//! assert_eq!(proxies.client(balancer, &headers).to_string(), "203.0.113.7");
//! let stranger: IpAddr = "198.51.100.9".parse()?;
//! assert_eq!(proxies.client(stranger, &headers), stranger);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod key;
mod proxies;

pub use address::{PeerAddress, peer_address};
pub use key::{CallerKey, Principal, Who};
pub use proxies::{MAX_FORWARDED, TrustedProxies};

#[cfg(test)]
mod tests;
