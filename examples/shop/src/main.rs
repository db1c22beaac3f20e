//! A shop of real processes over RabbitMQ and PostgreSQL: `shop up` runs it, `shop gameday` breaks it. See README.md.
//!
//! - `services` are its processes, one file each;
//! - `common` is what each of them has;
//! - `town` starts them, with a broker and a database, and stops them;
//! - `gameday` lets customers come, breaks something, and tells what everybody saw.

mod common;
mod gameday;
mod services;
mod town;
mod up;

use std::process::ExitCode;

use clap::Parser;

use crate::common::telemetry::log;

/// A shop of real processes over RabbitMQ and PostgreSQL, and a game day that breaks it.
#[derive(Parser)]
#[command(name = "shop", version)]
enum Command {
    /// Starts all of it, prints where everything is, and stops on Ctrl-C.
    Up(up::Options),
    /// Opens it on private servers, breaks one thing after the other, and prints what was expected against what was seen.
    Gameday(gameday::Options),
    /// One of the processes; `up` starts them.
    #[command(hide = true)]
    Service(common::settings::Place),
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Command::parse() {
        Command::Up(options) => up::run(options).await,
        Command::Gameday(options) => gameday::run(options).await,
        Command::Service(place) => services::run(place).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(error);
            ExitCode::FAILURE
        }
    }
}
