//! The engine on the backend in memory, in paused time.

mod failures;
mod protection;
mod retention;
mod runs;
mod support;
