//! What is wrong with a dependency's settings, taken together: each rule is a function, and says its numbers.

mod budget;
mod rules;

pub(super) use budget::{Plan, Segment};

use super::Problem;
use super::view::View;

/// Adds what contradicts itself, and what is legal but unwise.
pub(super) fn check(view: &View, problems: &mut Vec<Problem>) {
    for rule in rules::ALL {
        problems.extend(rule(view));
    }
}
