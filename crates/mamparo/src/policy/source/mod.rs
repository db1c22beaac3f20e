//! Where policies are read from: files in TOML, YAML or JSON, and the environment.

mod environment;
mod file;
mod mark;
mod toml;
mod yaml;

pub(super) use environment::{is_ours, is_servers, names_a_setting, overlay};
pub(super) use file::{read, text};
pub(super) use mark::Marks;
