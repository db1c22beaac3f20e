//! The store against real servers, and layers over it.

mod cast;
mod keeping;
mod layers;
mod troubles;
