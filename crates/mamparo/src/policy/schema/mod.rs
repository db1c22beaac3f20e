//! Which settings there are: one list, from which files are checked, described, and given a JSON Schema.

mod checked;
mod dependency;
mod field;

pub(super) use checked::{checked, join};
pub(super) use dependency::DEPENDENCY;
pub(super) use field::{Field, Kind, duration};
