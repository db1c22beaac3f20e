//! Holds the snippets of the documents to what compiles and runs.
#![doc = include_str!("../README.md")]
#![doc = include_str!("../docs/operating/README.md")]
