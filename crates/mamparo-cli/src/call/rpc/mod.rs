//! `mamparo call --grpc`: one unary method, its messages as JSON.
//!
//! What was typed becomes [`settings`]; [`prepare`] learns what the method's messages look like and reads the one to
//! send; [`run`] sends it through the stack, and [`reply`] is what came back.

mod plan;
mod prepare;
mod reply;
mod run;
mod settings;

pub(super) use run::call;
