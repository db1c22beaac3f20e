//! gRPC's answers, judged.
//!
//! An answer's status is [`Code`]: in the head of a Trailers-Only answer, in the trailers of any other, and where it is in
//! neither, the one that the HTTP status stands for (gRPC over HTTP/2, "Responses" and "HTTP to gRPC Status Code Mapping").
//! [`Grpc`] is the classifier. [`Pushback`] is what a server says of sending the request again (gRFC A6), [`message`] the form
//! in which a status's text stands in a header.
//!
//! ```
//! use http::Response;
//! use mamparo_core::grpc::{Code, Grpc};
//! use mamparo_core::{Classify, Kind, Resend};
//!
//! let answer = Response::builder().header("grpc-status", "14").body(())?;
//! let head = Grpc.head(Ok(&answer));
//! assert_eq!(head.verdict.kind(), Some(Kind::Unavailable));
//! assert_eq!(head.verdict.resend(), Resend::IfListed(Code::Unavailable));
//! assert!(head.last, "a Trailers-Only answer is over");
//! # Ok::<(), http::Error>(())
//! ```

mod classify;
mod code;
mod codes;
pub mod message;
mod names;
mod pushback;

pub use classify::{Grpc, GrpcEnds};
pub use code::Code;
pub use codes::Codes;
pub use names::{
    CONTENT_TYPE, GRPC_MESSAGE, GRPC_PREVIOUS_RPC_ATTEMPTS, GRPC_RETRY_PUSHBACK_MS, GRPC_STATUS,
    GRPC_STATUS_DETAILS, GRPC_TIMEOUT, field, is_grpc,
};
pub use pushback::Pushback;

#[cfg(test)]
mod tests;
