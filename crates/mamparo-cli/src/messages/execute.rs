//! Runs a command for a message.

use std::process::Stdio;

use mamparo_core::BoxError;
use mamparo_rabbitmq::{Delivery, Permanent};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

/// `EX_DATAERR` of sysexits.h: the message is at fault.
const DATA_ERROR: i32 = 65;

/// Gives a message to a command; dropped, whatever the command has started is killed.
pub(super) async fn execute(command: &str, delivery: Delivery) -> Result<(), BoxError> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .env("MAMPARO_ATTEMPT", delivery.attempt().to_string())
        .env("MAMPARO_QUEUE", delivery.queue())
        .stdin(Stdio::piped())
        .process_group(0);
    for (name, value) in [
        ("MAMPARO_MESSAGE_ID", delivery.message_id()),
        ("MAMPARO_ROUTING_KEY", Some(delivery.routing_key())),
        ("TRACEPARENT", delivery.header("traceparent")),
    ] {
        // No environment has room for a NUL.
        match value.filter(|value| !value.contains('\0')) {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let mut group = Group(shell.spawn()?);
    if let Some(mut input) = group.0.stdin.take() {
        // Not every command reads all of it, or any.
        drop(input.write_all(delivery.body()).await);
    }
    let status = group.0.wait().await?;
    match status.code() {
        Some(0) => Ok(()),
        Some(DATA_ERROR) => Err(Permanent::new(format!("the command ended with {status}")).into()),
        _ => Err(format!("the command ended with {status}").into()),
    }
}

/// A command, and what it has started.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let number = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = number.and_then(Pid::from_raw) {
            // One that has just ended is nobody's loss.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}
