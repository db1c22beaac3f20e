//! HTTP bodies that yield by script and tell what was done to them.
//!
//! ```
//! use http_body_util::BodyExt;
//! use mamparo_testkit::body::{Frames, ScriptedBody};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let body = ScriptedBody::new(Frames::new().data("ab").data("c").trailer("grpc-status", "14"));
//! let watch = body.watch();
//! let whole = body.collect().await.unwrap();
//! assert_eq!(whole.trailers().unwrap()["grpc-status"], "14");
//! assert_eq!(whole.to_bytes(), "abc");
//! assert!(watch.ended() && watch.is_dropped());
//! # }
//! ```

mod frames;
mod scripted;
#[cfg(test)]
mod tests;

pub use frames::Frames;
pub use scripted::{BodyWatch, ScriptedBody};
