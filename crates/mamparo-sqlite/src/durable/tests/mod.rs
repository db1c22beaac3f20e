//! One file per subject: the suite that every backend runs, whole steps, how queries are answered, what can be wrong with a file, and
//! when things happen.

mod conformance;
mod crash;
mod file;
mod fixture;
mod plans;
mod steps;
mod support;
mod time;
