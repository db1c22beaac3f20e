//! What the machine does with one input, what it calls things, and what holds over random histories.

mod histories;
mod inputs;
mod names;
mod support;
mod table;
