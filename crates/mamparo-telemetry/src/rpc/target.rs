//! The server that an RPC is sent to.

use std::sync::Arc;

use http::{HeaderMap, Uri};

use crate::http::{Server, Servers};

/// Where a client's requests go to.
///
/// A client of tonic's names it to its channel only, further in than any layer: then it must be told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    told: Option<Server>,
    servers: Servers,
}

impl Target {
    pub(crate) fn tell(&mut self, address: &str, port: u16) {
        self.told = Some(Server {
            address: Arc::from(address),
            port: Some(port),
        });
    }

    pub(crate) fn find(&self, uri: &Uri, headers: &HeaderMap) -> Option<Server> {
        self.servers
            .find(uri, headers)
            .or_else(|| self.told.clone())
    }
}
