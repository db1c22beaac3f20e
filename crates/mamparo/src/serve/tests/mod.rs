//! A server as its caller sees it, and as whoever runs it does. Paused time.

mod layers;
mod limits;
mod readiness;
mod stopping;
