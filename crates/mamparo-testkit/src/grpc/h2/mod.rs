//! HTTP/2 spoken frame by frame, for what no library lets a server do.
//!
//! - [`ScriptedH2`] listens on a free port of 127.0.0.1 until it is dropped, and counts what its clients do
//! - [`Exchange`] is what it does with one request, step by step
//!
//! It reads no headers: which request it got is not its business.
//!
//! ```
//! use mamparo_testkit::grpc::{self, EchoClient, EchoReply, EchoRequest, Exchange, ScriptedH2};
//! use tonic::Code;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let refused = Exchange::new().reset(h2::Reason::REFUSED_STREAM);
//! let replied = Exchange::new().head().message(&EchoReply::default()).trailers(&[("grpc-status", "0")]);
//! let server = ScriptedH2::start([refused, replied]).await;
//! let mut client = EchoClient::new(grpc::connect(server.address()));
//!
//! let status = client.say(EchoRequest::text("hola")).await.unwrap_err();
//! assert_eq!(status.code(), Code::Unavailable);
//! client.say(EchoRequest::text("hola")).await.unwrap();
//! assert_eq!(server.streams(), 2);
//! # }
//! ```

mod connection;
mod exchange;
mod frame;
mod server;

pub use exchange::Exchange;
pub use server::ScriptedH2;
