//! `mamparo check`: policy files, refused where they contradict themselves.
//!
//! Each file or folder becomes a [`service`], and what its dependencies cost becomes figures; [`chain`] follows the calls from
//! one service to the next. All of it is what was [`found`], which is shown as [`text`], JSON or [`sarif`]. Who calls whom is a
//! [`graph`], drawn by [`mermaid`], or by [`svg`] where the [`layout`] says. The [`checklist`] asks what else there is to know.

mod chain;
mod checklist;
mod found;
mod graph;
mod layout;
mod mermaid;
mod run;
mod sarif;
mod service;
mod svg;
mod text;
mod watch;

pub(crate) use found::Figures;
pub(crate) use run::check;
