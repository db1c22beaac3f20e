//! `mamparo check`: policy files, refused where they contradict themselves.
//!
//! Each file or folder becomes a [`service`], and what its dependencies cost becomes figures; [`chain`] follows the calls from
//! one service to the next. All of it is what was [`found`], which is shown as [`text`], JSON or [`sarif`], or drawn by [`mermaid`].

mod chain;
mod found;
mod mermaid;
mod run;
mod sarif;
mod service;
mod text;

pub(crate) use found::Figures;
pub(crate) use run::check;
