//! On a real broker, which the tests of this crate share.

mod consuming;
mod copies;
mod failing;
mod letters;
mod publishing;
mod random;
mod settling;
mod support;
mod topologies;
mod unreadable;
