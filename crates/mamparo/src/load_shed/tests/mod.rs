//! Load shedding as its caller sees it, and its decisions over any load.

mod calls;
mod cast;
mod decisions;
mod priorities;
mod queueing;
mod throttling;
