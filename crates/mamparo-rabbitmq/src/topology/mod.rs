//! The queues of one consumer, and how they are declared.
//!
//! ```text
//!              ┌──────────────── <queue>.dlx (direct exchange) ────────────────┐
//!              ▼                              ▼                                ▼
//!  producers ─► <queue> ──consumer──►  <queue>.retry ──after its TTL──►    <queue>.dlq
//!              ▲                              │
//!              └──────────────────────────────┘
//! ```
//!
//! All are quorum queues, and what expires in one is handed on at least once: the broker forgets it only when the next
//! queue has it. Several delays are several queues (`<queue>.retry.10s`, `<queue>.retry.1m`): within one queue a message
//! never waits behind one that waits longer.

mod declare;
mod names;
mod settings;

pub(crate) use declare::{declare, declare_kept, open_channel, peek};
pub use settings::{Topology, TopologyBuilder};
