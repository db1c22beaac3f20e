//! The machine that production runs, checked: every order of everything that can happen to one transaction.
//!
//! The model has what surrounds the machine: a store that does conditional writes, a scheduler, queues that duplicate, delay,
//! reorder and lose, two handlers of each kind that may die between any two steps, operators, a breaker, a reconciler, and
//! a dependency that honours idempotency keys. What is *decided* is not modelled: handlers here drive the same
//! [`Run`](super::Run) and so the same [`decide`](super::decide) as the engine does, one question at a time, or the same
//! [`plan`](crate::handler::plan) at once.
//!
//! Faults are bounded, so that every run ends. "Eventually" is said of the last states: where nothing more can happen
//! without a fault, the transaction must be at its end. That this covers every run is checked too: without faults,
//! no state can come twice.
//!
//! - `bounds.rs`: how much may go wrong, and what is taken away from the rules
//! - `world.rs`: one state, and what a step does to it
//! - `judge.rs`: what must hold of it
//! - `act.rs`: what can happen next
//! - `checks.rs`: the searches that must find nothing
//! - `traces.rs`: runs of the model, for every backend to replay
//! - `mutations.rs`: each rule taken away, and what must be found then

mod act;
mod bounds;
mod checks;
mod judge;
mod mutations;
mod traces;
mod world;
