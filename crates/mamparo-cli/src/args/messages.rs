//! The options of `mamparo consume`, and what chooses messages.

use std::str::FromStr;

use super::typed::Delay;

const CONSUME: &str = "\
The command is run by `sh -c` for each message, with the body on its standard input and, in its environment, MAMPARO_ATTEMPT,
MAMPARO_QUEUE, MAMPARO_MESSAGE_ID, MAMPARO_ROUTING_KEY and TRACEPARENT, where the message has them. Its exit code settles it:
  0       done: acknowledged
  65      no other attempt would mend it: a dead letter at once
  others  tried again after a delay, and a dead letter at the last attempt; so is a command that takes too long, which is killed

Signals: SIGTERM and SIGINT stop it: what is under way is finished, the rest given back.

Exit codes:
  0  it was stopped
  1  refused: the broker does not let us in, or has other queues
  2  usage, or there is no such command
  4  it ended by itself

Example:
  mamparo consume --amqp amqp://guest:guest@localhost/%2f --queue payments --exec './charge' --delay 10s --delay 1m";

#[derive(Debug, clap::Args)]
#[command(after_help = CONSUME)]
pub(crate) struct ConsumeArgs {
    /// Where the broker is: `amqp://USER:PASSWORD@HOST/VHOST`.
    #[arg(long, value_name = "URL")]
    pub(crate) amqp: String,

    /// The queue; it is declared, with its retry queues and its dead letters.
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: String,

    /// The command that handles one message.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: String,

    /// How many messages are handled at once.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrency: u16,

    /// How often a message is tried, the first time included.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_attempts: u32,

    /// How long the command may take for one message.
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub(crate) timeout: Delay,

    /// The wait before another attempt; given several times, they grow. 30s by default.
    #[arg(long = "delay", value_name = "DURATION")]
    pub(crate) delays: Vec<Delay>,

    /// Who answers for the queue; it is written on each dead letter.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) owner: String,

    /// What to do about dead letters; it is written on each.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) runbook: String,
}

/// What must hold of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) key: Key,
    pub(crate) text: String,
}

/// What of a message is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Id,
    Reason,
    /// Which contains the text; the others are it.
    Detail,
    Type,
    Header(String),
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let help = "write KEY=TEXT, where KEY is id, reason, detail, type or header.NAME";
        let (key, text) = text.split_once('=').ok_or(help)?;
        let key = match key {
            "id" => Key::Id,
            "reason" => Key::Reason,
            "detail" => Key::Detail,
            "type" => Key::Type,
            other => Key::Header(other.strip_prefix("header.").ok_or(help)?.to_owned()),
        };
        let text = text.to_owned();
        Ok(Self { key, text })
    }
}
