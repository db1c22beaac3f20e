//! A generated gRPC service, and peers that speak it by script.
//!
//! - [`generated`] is what `proto/echo.proto` became: messages, client, server; [`FILE_DESCRIPTOR_SET`] is for reflection
//! - [`Echoing`] is the service itself: a request says how late, how often and with which status it wants to be answered
//! - [`serve`] puts it behind a [`Server`](crate::server::Server), which keeps what it saw, and answers by script instead:
//!   [`Answer`] is what it does with one attempt, [`Answers`] the list of them
//! - [`ScriptedH2`] speaks HTTP/2 frame by frame, and breaks it: [`Exchange`] is what it does with one request
//! - [`connect`] makes a bare channel
//!
//! ```
//! use mamparo_testkit::grpc::{self, Answer, EchoClient, EchoRequest};
//! use tonic::Code;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let busy = Answer::status(Code::Unavailable).header("grpc-retry-pushback-ms", "250");
//! let server = grpc::serve([busy, Answer::echo()]).await;
//! let mut client = EchoClient::new(grpc::connect(server.address()));
//!
//! let refused = client.say(EchoRequest::text("hola")).await.unwrap_err();
//! assert_eq!(refused.code(), Code::Unavailable);
//! let reply = client.say(EchoRequest::text("hola")).await.unwrap();
//! assert_eq!(reply.into_inner().text, "hola");
//! assert_eq!(server.requests().len(), 2);
//! # }
//! ```

mod answer;
mod echo;
pub mod generated;
mod h2;
mod serve;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Answers};
pub use echo::Echoing;
pub use generated::echo_client::EchoClient;
pub use generated::echo_server::{Echo, EchoServer};
pub use generated::{EchoReply, EchoRequest, Entry, FILE_DESCRIPTOR_SET, Failure};
pub use h2::{Exchange, ScriptedH2};
pub use serve::{connect, serve};
