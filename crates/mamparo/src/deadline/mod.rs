//! A deadline that travels: bounds an operation, and tells the next service how much of it remains.

pub mod codec;
