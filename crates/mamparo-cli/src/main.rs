//! The `mamparo` command: sends one request through the whole stack and shows what happened, demonstrates it, checks policies, or runs the
//! defer plane.

mod args;
mod aws;
mod call;
mod check;
mod completions;
mod defer;
mod demo;
mod events;
mod exit;
mod explain;
mod grpc;
mod messages;
mod output;
mod page;
mod policies;
mod schema;
mod telemetry;
mod trace;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, AwsCommand, Command, EngineCommand};
use crate::exit::Exit;

/// What a server is told that calls it, unless a header says otherwise.
const USER_AGENT: &str = concat!("mamparo/", env!("CARGO_PKG_VERSION"));

fn main() -> ExitCode {
    let exit = match Args::parse().command {
        Command::Call(args) => finish(call::call(*args)),
        Command::Demo(args) => finish(demo::demo(args)),
        Command::Check(args) => finish(check::check(args)),
        Command::Explain(args) => explain::explain(&args),
        Command::Schema => schema::schema(),
        Command::Engine(EngineCommand::Run(args)) => finish(defer::run(args)),
        Command::Engine(EngineCommand::Status(args)) => finish(defer::status(args)),
        Command::Tx(command) => finish(defer::tx(command)),
        Command::Dlq(command) => finish(defer::dlq(command)),
        Command::Events(command) => finish(events::events(command)),
        Command::Consume(args) => finish(messages::consume(args)),
        Command::Reconcile(args) => finish(defer::reconcile(args)),
        Command::Aws(AwsCommand::Plan(args)) => aws::plan(&args),
        Command::Aws(AwsCommand::Apply(args)) => finish(aws::apply(args)),
        Command::Aws(AwsCommand::Check(args)) => finish(aws::check(args)),
        Command::Completions { shell } => completions::completions(shell),
    };
    exit.into()
}

/// Runs a command to its end; what still blocks after that, such as a read from a terminal, is left behind.
fn finish(command: impl Future<Output = Exit>) -> Exit {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(command);
            runtime.shutdown_background();
            exit
        }
        Err(error) => {
            output::error(&format!("no threads to work with: {error}"));
            Exit::NoAnswer
        }
    }
}
