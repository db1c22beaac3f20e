//! Holds the snippets of the README to what compiles and runs.
#![doc = include_str!("../README.md")]
