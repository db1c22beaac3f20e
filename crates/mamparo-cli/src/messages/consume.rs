//! `mamparo consume`.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use mamparo::serve::termination;
use mamparo_core::InvalidSetting;
use mamparo_rabbitmq::{Consumer, ConsumerEvent, Settings, Settled, Topology};
use tokio::process::Command;
use tower::service_fn;

use super::execute::execute;
use crate::args::ConsumeArgs;
use crate::defer::{Trouble, ended};
use crate::exit::Exit;
use crate::output;

/// As long as it may take, at a stop, to settle what a command has handled.
const SETTLING: Duration = Duration::from_secs(10);

/// Runs `mamparo consume`.
pub(crate) async fn consume(args: ConsumeArgs) -> Exit {
    ended(run(args).await)
}

async fn run(args: ConsumeArgs) -> Result<Exit, Trouble> {
    // From here on, a signal is heard.
    let stop = termination().map_err(|error| Trouble::away(error.to_string()))?;
    exists(&args.exec).await?;
    let consumer = consumer(&args).map_err(|error| Trouble::usage(error.to_string()))?;
    let command: Arc<str> = args.exec.into();
    let service = service_fn(move |delivery| {
        let command = Arc::clone(&command);
        async move { execute(&command, delivery).await }
    });
    let ran = consumer.run(service, stop).await;
    ran.map_err(|error| match error.is_refusal() {
        true => Trouble::refused(error.to_string()),
        false => Trouble::away(error.to_string()),
    })?;
    Ok(Exit::Success)
}

fn consumer(args: &ConsumeArgs) -> Result<Consumer, InvalidSetting> {
    let settings = Settings::builder(&args.amqp)
        .name("mamparo consume")
        .build()?;
    let mut topology = Topology::builder(&args.queue)
        .owner(&args.owner)
        .runbook(&args.runbook);
    if !args.delays.is_empty() {
        topology = topology.delays(args.delays.iter().map(|delay| delay.0));
    }
    Consumer::builder(settings, topology.build()?)
        .prefetch(args.concurrency)
        .max_attempts(args.max_attempts)
        .handler_timeout(args.timeout.0)
        .drain_timeout(args.timeout.0.saturating_add(SETTLING))
        .report(report)
        .build()
}

/// Refuses a command whose first word names nothing: each message would fail. A word that the shell reads otherwise, such as
/// `(cd` or `NAME=value`, is left to it.
async fn exists(command: &str) -> Result<(), Trouble> {
    let first = command.split_whitespace().next().unwrap_or_default();
    let plain = |c: char| c.is_alphanumeric() || "_-./+".contains(c);
    if !first.chars().all(plain) {
        return Ok(());
    }
    let mut look = Command::new("sh");
    look.args(["-c", "command -v \"$1\"", "sh", first])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let found = look.status().await;
    if !first.is_empty() && found.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    Err(Trouble::usage(format!(
        "--exec: there is no command \"{first}\""
    )))
}

fn report(event: &ConsumerEvent<'_>) {
    match event {
        ConsumerEvent::Connected { topology } => {
            output::note(&format!("consuming {}", topology.queue()))
        }
        ConsumerEvent::Disconnected { error, wait, .. } => {
            output::warning(&format!("{error}; another try in {} ms", wait.as_millis()));
        }
        ConsumerEvent::Settled {
            topology,
            delivery,
            settled,
            detail,
            ..
        } => {
            let id = delivery.message_id();
            let id = output::plain(id.unwrap_or("a message without an id"));
            let detail = output::plain(detail);
            match settled {
                Settled::Retry { attempts, .. } => output::note(&format!(
                    "{id}: tried again after attempt {attempts}: {detail}"
                )),
                Settled::Dead { reason, .. } => {
                    let (owner, runbook) = (topology.owner(), topology.runbook());
                    output::warning(
                        format!(
                            "{id}: a dead letter ({}): {detail} {owner} {runbook}",
                            reason.as_str()
                        )
                        .trim_end(),
                    );
                }
                _ => {}
            }
        }
        ConsumerEvent::Unsettled { error, .. } => output::warning(&error.to_string()),
        ConsumerEvent::Died { why, .. } => output::warning(why),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: ConsumeArgs,
    }

    #[test]
    fn a_stop_waits_for_as_long_as_a_command_may_take() {
        let url = "amqp://localhost";
        let line = ["", "--amqp", url, "--queue", "q", "--exec", "cat"];
        let line = Line::parse_from(line.into_iter().chain(["--timeout", "20m"]));
        let consumer = consumer(&line.args).unwrap();
        assert!(format!("{consumer:?}").contains("drain_timeout: 1210s"));
    }
}
