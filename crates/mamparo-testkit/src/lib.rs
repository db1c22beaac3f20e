//! Scripted peers for mamparo's own tests.
