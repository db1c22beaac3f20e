//! A hedge as its caller sees it: scripted services, paused time.

mod attempts;
mod bodies;
mod budgets;
mod cast;
mod company;
mod grpc;
mod one_by_one;
