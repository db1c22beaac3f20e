//! The command line as a whole.

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use super::{
    AwsCommand, CallArgs, CheckArgs, ConsumeArgs, DemoArgs, DlqCommand, EngineCommand,
    EventsCommand, ExplainArgs, ReconcileArgs, TxCommand,
};

const EXAMPLES: &str = "\
Examples:
  mamparo demo                                 see it at work, in seconds, with nothing to set up
  mamparo call http://localhost:8080/items     send one request, and see each attempt
  mamparo check policies.toml                  refuse a policy file that contradicts itself
  mamparo explain --policy policies.toml       say what each of its policies does
  mamparo engine run --store sqlite:engine.db --policy policies.toml
                                               send what was refused again when its time has come
  mamparo call --help                          all of its options, and the exit codes
  source <(mamparo completions bash)           complete options with the tab key";

/// Resilient calls, from the command line.
///
/// A deadline bounds the whole call, a failed request is sent again when that is safe, wanted and in time,
/// and each physical attempt is a span that you see.
#[derive(Debug, Parser)]
#[command(name = "mamparo", version, propagate_version = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sends one request through the stack, and shows each attempt and each wait.
    ///
    /// The answer's body goes to stdout, byte for byte. What happened goes to stderr: a line for the operation, each
    /// attempt and each wait, and one for the outcome.
    Call(Box<CallArgs>),
    /// Checks policy files: what contradicts itself is told with line, numbers and a remedy.
    ///
    /// Of each dependency it shows how its attempts and waits fit its deadline; of several services, how often a call is sent
    /// along each path from one to the next, who owns the retry, and whether deadlines shrink inward.
    Check(CheckArgs),
    /// Says what a policy does: its layers in order, each value with its origin, the worst case.
    Explain(ExplainArgs),
    /// Prints the JSON Schema of a policy file, for editors.
    Schema,
    /// Shows the layers at work, on servers that misbehave.
    ///
    /// A shop and its dependencies run on loopback for a few seconds: one is flaky, one slow, one commits and then loses its
    /// answer; then one goes down, one starves another, and one is late now and then. You see a few of the operations, a
    /// table for each kind of trouble, what the metrics say, and a line for each thing that is proved.
    Demo(DemoArgs),
    /// Sends what was refused again when its time has come, and says how it goes.
    #[command(subcommand)]
    Engine(EngineCommand),
    /// Begins, shows and operates transactions: requests that are sent again, hours later, while the answer means "not now".
    #[command(subcommand)]
    Tx(TxCommand),
    /// Looks after dead letters: messages that could not be handled.
    #[command(subcommand)]
    Dlq(DlqCommand),
    /// Looks after parked events: what an outbox's relay could not publish.
    #[command(subcommand)]
    Events(EventsCommand),
    /// Gives each message of a RabbitMQ queue to a command, and settles it by the command's exit code.
    Consume(ConsumeArgs),
    /// Finds transactions that are stuck, and brings them back on their way; a running engine does so all the time.
    Reconcile(ReconcileArgs),
    /// Prints, makes and checks what the defer plane needs on AWS.
    #[command(subcommand)]
    Aws(AwsCommand),
    /// Prints the completions of a shell.
    Completions {
        /// The shell to complete for.
        shell: Shell,
    },
}
