//! The operational checklist: what to know of each dependency before it fails for the first time.
//!
//! The [`questions`] of [`meaning`], [`time`], [`capacity`] and of the [`breaker`] are answered from the [`facts`] of each policy
//! where they can be; those about what is observed and what was tried are left open, since only a person knows.

mod breaker;
mod capacity;
mod facts;
mod meaning;
mod questions;
mod text;
mod time;

pub(super) use questions::Checklist;
pub(super) use text::text;
