//! How the cases are measured, and how the figures are shown.

mod allocated;
pub(crate) mod callgrind;
mod cpu;
mod table;
pub(crate) mod timing;

pub(crate) use table::{Table, grid};
pub(crate) use timing::median;
