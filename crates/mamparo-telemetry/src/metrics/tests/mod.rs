//! What is written: of each event, and by the catalog.

mod catalog;
mod told;
