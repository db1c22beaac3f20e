//! What the plan says, against what the services and their linters take, and against a server.

mod arithmetic;
mod differences;
mod lint;
mod policies;
mod server;
mod templates;
