//! Which settings there are: one list, from which files are checked, described, and given a JSON Schema.

mod checked;
mod defer;
mod dependency;
mod field;
mod json;
mod server;
mod service;

pub(super) use checked::{checked, join, nearest};
pub(super) use dependency::{DEPENDENCY, find, name};
pub(super) use field::{Field, Kind, duration};
pub use json::json_schema;
pub(super) use server::SERVER;
pub(super) use service::{EXTERNAL_RETRIER, SERVICE};
