//! A bulkhead as its caller sees it, in paused time, and its parts.

mod adaptive;
mod answers;
mod broken;
mod cast;
mod line;
mod partitions;
mod pressure;
mod properties;
mod settings;
