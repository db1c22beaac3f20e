//! Taste that can be checked, checked: who depends on whom, the files of a layer, the length of a file, what the docs must
//! name, and which test holds which known case.
//!
//! Every message says what is wrong, where, and how to mend it.

mod cases;
mod coverage;
mod crates;
mod exceptions;
mod layers;
mod source;
mod text;
mod tree;
