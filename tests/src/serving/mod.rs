//! A server's whole life, in a process of its own, and behind a real nginx.

mod load;
mod nginx;
mod process;
mod stop;
