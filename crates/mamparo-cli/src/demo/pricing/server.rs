//! The server: plain tonic, with no layer of ours.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use http::Uri;
use mamparo_core::BoxError;
use tokio::task::JoinHandle;
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::MetadataMap;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};

use super::generated::prices_server::{Prices, PricesServer};
use super::generated::{Item, Price};
use crate::demo::notes::Notes;

/// How much patience it asks for the first time.
pub(super) const PUSHBACK: Duration = Duration::from_millis(150);

/// How often a price is told to whoever watches.
pub(super) const TICK: Duration = Duration::from_millis(40);

/// The running server; it stops when it is dropped.
#[derive(Debug)]
pub(in crate::demo) struct Pricing {
    address: SocketAddr,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

#[derive(Clone, Debug)]
struct Service {
    notes: Notes,
}

impl Pricing {
    pub(in crate::demo) async fn start(notes: Notes) -> io::Result<Self> {
        let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into())?.with_nodelay(Some(true));
        let address = incoming.local_addr()?;
        let server = Server::builder().add_service(PricesServer::new(Service { notes }));
        let serving = tokio::spawn(server.serve_with_incoming(incoming));
        Ok(Self { address, serving })
    }

    pub(in crate::demo) fn origin(&self) -> Result<Uri, BoxError> {
        Ok(format!("http://{}", self.address).parse()?)
    }
}

impl Drop for Pricing {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[tonic::async_trait]
impl Prices for Service {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<Price, Status>> + Send>>;

    /// Has no price the first time, and says when to come back.
    async fn get(&self, request: Request<Item>) -> Result<Response<Price>, Status> {
        match self.notes.priced(request.metadata()) {
            0 => Err(busy()),
            _ => Ok(Response::new(price(request.get_ref()))),
        }
    }

    /// Never ends by itself.
    async fn watch(&self, request: Request<Item>) -> Result<Response<Self::WatchStream>, Status> {
        struct Stops(Notes);
        impl Drop for Stops {
            fn drop(&mut self) {
                self.0.unwatched();
            }
        }
        let stops = Stops(self.notes.clone());
        let price = price(request.get_ref());
        let ticks = tokio_stream::iter(std::iter::repeat(price)).then(move |price| {
            stops.0.ticked();
            async move {
                tokio::time::sleep(TICK).await;
                Ok(price)
            }
        });
        Ok(Response::new(Box::pin(ticks)))
    }
}

fn busy() -> Status {
    let mut metadata = MetadataMap::new();
    let millis = u32::try_from(PUSHBACK.as_millis()).unwrap_or(u32::MAX);
    metadata.insert("grpc-retry-pushback-ms", millis.into());
    Status::with_metadata(Code::Unavailable, "prices are being made", metadata)
}

const fn price(item: &Item) -> Price {
    Price {
        cents: item.number * 100 - 1,
    }
}
