//! The built `mamparo` command against real servers, seen from outside: what is sent, printed and exported, and how it exits.

mod answers;
mod bad_input;
mod collector;
mod export;
mod json;
mod resends;
mod run;
mod trouble;
