//! What is wrong with a dependency's settings, taken together: each rule is a function, and says its numbers.

mod budget;
mod rules;

pub use budget::{Plan, Segment};
pub(super) use rules::check;
