//! Adapters: real HTTP clients as tower services, and the recommended stack around them.
//!
//! An adapter is the innermost service of a stack. It hands the request to its client, and says of the client's error
//! what it proves: never sent, never processed, or unknown. What a stack sends is a
//! `Request<ReplayBody<B>>`; all adapters take it.
//!
//! | adapter | feature | what it stands on |
//! |---|---|---|
//! | [`HyperTransport`] | `hyper` | hyper-util's pooled client, over any connector |
//! | [`ReqwestTransport`] | `reqwest` | a `reqwest::ClientBuilder`, whose own retries and redirects are turned off |
//! | [`TonicTransport`] | `tonic` | a `tonic::transport::Channel`, or what stands in for one |
//!
//! # Inside the client
//!
//! A breaker, a bulkhead or a rate limit can also stand around the connector, where it refuses or holds up new connections
//! while those that are open go on. reqwest takes it with `ClientBuilder::connector_layer`, hyper-util and tonic through [`connector()`].
//!
//! # Redirects
//!
//! A redirect that a client follows by itself is a physical send that no span sees and no `resend_count` counts, so
//! reqwest's are off. To follow them, put tower-http's `FollowRedirectLayer` between the retry and the attempt's span:
//! each hop is then a send with a span of its own.

mod connector;
#[cfg(feature = "hyper")]
mod hyper;
mod proof;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "tonic")]
mod sound;
#[cfg(feature = "tonic")]
mod tonic;
#[cfg(feature = "tonic")]
mod upload;

pub use self::connector::{Connector, ConnectorFuture, ConnectorLayer, connector};
#[cfg(feature = "hyper")]
pub use self::hyper::{HyperClient, HyperFuture, HyperTransport, hyper};
#[cfg(feature = "reqwest")]
pub use self::reqwest::{ReqwestClient, ReqwestFuture, ReqwestTransport, reqwest};
#[cfg(feature = "tonic")]
pub use self::sound::SoundBody;
#[cfg(feature = "tonic")]
pub use self::tonic::{TonicClient, TonicFuture, TonicTransport, tonic};

#[cfg(test)]
#[cfg(all(feature = "hyper", feature = "reqwest", feature = "tonic"))]
mod tests;
