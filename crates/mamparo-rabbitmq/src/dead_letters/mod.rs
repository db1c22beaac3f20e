//! What a person does with the dead letters of a queue: look, put back, discard.

mod letter;
mod queue;

pub use letter::Letter;
pub use queue::{DeadLetters, Depths, Selection};
