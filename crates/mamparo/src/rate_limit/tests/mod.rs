//! A rate limit as its caller sees it, and its decision over any schedule.

mod calls;
mod cast;
mod keys;
mod obeying;
mod schedule;
mod sharing;
mod telling;
mod waits;
