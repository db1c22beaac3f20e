//! How a request is made again.
//!
//! A [`Replay`] splits a request into what goes on the wire now and what is held for a resend, which is a copy
//! made only when a resend can follow. For HTTP the body streams through a [`ReplayBody`] while it is recorded,
//! frame by frame, up to a bound:
//!
//! - a body is `Unpin`, as hyper's client wants it too: `Box::pin` one that is not;
//! - an empty body costs nothing, and one of a single frame that is there at once no more than that frame;
//! - a body within the bound is replayed with the same frames and trailers, and a resend may begin while its
//!   upload is unfinished: the new attempt reads on where the recording ends;
//! - a body over the bound is sent once, never refused, and nothing of it is kept;
//! - once a resend has taken over, the attempt before reads no more of the body: its reader fails;
//! - attempts side by side each read the whole body, whoever is ahead reads from the source for all. Should it outgrow
//!   the bound, the oldest of them reads on and the others fail.
//!
//! Retry uses it, and whatever else resends; it is not a layer.

mod ahead;
mod body;
mod crowd;
mod grpc;
mod head;
mod http;
mod plain;
mod recording;
mod request;
mod safety;
mod tape;

pub use body::ReplayBody;
pub use http::{ATTEMPT_HEADER, HttpHeld};
pub use recording::{NotKept, Superseded};
pub use request::Replay;
pub use safety::Safety;

#[cfg(test)]
mod tests;
