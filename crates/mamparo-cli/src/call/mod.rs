//! `mamparo call`: one real request through the recommended stack, and what became of it.
//!
//! What was typed becomes [`settings`]; [`run`] sends it and hands the body on; what happened is read from the spans
//! and events that the layers wrote, judged in [`ending`], and shown as a waterfall by [`report`] or as JSON by [`record`].

mod about;
mod body;
mod deliver;
mod ending;
mod finish;
mod problem;
mod record;
mod report;
mod rpc;
mod run;
mod settings;
mod stack;
mod target;

pub(crate) use run::call;
