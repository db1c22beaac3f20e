//! What is wrong with a dependency's settings, taken together: each rule is a function, and says its numbers.

mod budget;
mod defer;
mod files;
mod resends;
mod rules;

pub use budget::{Plan, Segment};
pub(super) use files::{settings, something_is_configured};
pub(super) use resends::one_layer_retries;
pub(super) use rules::check;

#[cfg(test)]
mod tests;
