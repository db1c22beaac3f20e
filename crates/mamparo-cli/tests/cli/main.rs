//! The built `mamparo` command against real servers, seen from outside: what is sent, printed and exported, and how it exits.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod articles;
#[cfg(test)]
mod aws;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod chain_picture;
#[cfg(test)]
mod check;
mod check_watch;
#[cfg(test)]
mod checklist;
#[cfg(test)]
mod collector;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod durable;
#[cfg(test)]
mod events;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod export;
#[cfg(test)]
mod grpc;
#[cfg(test)]
mod grpc_server;
#[cfg(test)]
mod grpc_trouble;
#[cfg(test)]
mod json;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod operating;
#[cfg(test)]
mod picture;
#[cfg(test)]
mod policy_schema;
#[cfg(test)]
mod protection;
#[cfg(test)]
mod resends;
#[cfg(test)]
mod run;
#[cfg(test)]
mod trouble;
