//! `mamparo events`: what an outbox's relay could not publish, for people.
//!
//! [`run`] lists, shows, gives back and removes; [`record`] says how an event is shown.

mod record;
mod run;

pub(crate) use run::events;
