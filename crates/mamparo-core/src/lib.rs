//! The words that every part of mamparo shares.
