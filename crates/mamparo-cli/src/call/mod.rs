//! `mamparo call`: one real request through the recommended stack, and what became of it.
//!
//! What was typed becomes [`settings`]; [`run`] sends it and hands the body on; what happened is read from the spans
//! and events that the layers wrote, judged in [`ending`], and shown as a waterfall by [`report`] or as JSON by [`record`].

mod body;
mod deliver;
mod ending;
mod record;
mod report;
mod run;
mod settings;

pub(crate) use run::call;
