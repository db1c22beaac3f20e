//! Bodies that attempts read, poll by poll: one after the other, and side by side.

mod beside;
mod later;
