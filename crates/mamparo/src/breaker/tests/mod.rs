//! A breaker as its caller and its operator see it.

mod broken;
mod cast;
mod counting;
mod keyed;
mod operator;
mod probing;
mod pure;
mod recovery;
mod streams;
