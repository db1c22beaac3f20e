//! The connection of a gRPC call.

use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use mamparo::connect_timeout::ConnectTimeoutLayer;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint, Error};
use tower::Layer;

/// Makes a channel that connects when it is first used: HTTP/2, inside TLS where the scheme is https.
///
/// `connect` bounds name look-up and TCP, and says so in its error; `limit`, the same, bounds TLS too.
///
/// # Errors
///
/// Why there can be no TLS.
pub(crate) fn channel(
    origin: &Uri,
    connect: ConnectTimeoutLayer,
    limit: Option<Duration>,
) -> Result<Channel, Error> {
    let mut endpoint = Endpoint::from(origin.clone()).user_agent(crate::USER_AGENT)?;
    if origin.scheme_str() == Some("https") {
        endpoint = endpoint.tls_config(ClientTlsConfig::new().with_enabled_roots())?;
    }
    if let Some(limit) = limit {
        endpoint = endpoint.connect_timeout(limit);
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    Ok(endpoint.connect_with_connector_lazy(connect.layer(tcp)))
}
