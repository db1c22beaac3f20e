//! `shop gameday`.

use mamparo_core::BoxError;

use super::day::Day;
use super::faults::Fault;
use clap::ValueEnum as _;

#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// Only this fault; may be given again.
    #[arg(long, value_name = "NAME")]
    fault: Vec<Fault>,
    /// Prints the table as JSON.
    #[arg(long)]
    json: bool,
}

/// Breaks one thing after the other; fails if anything was seen otherwise than expected.
#[expect(clippy::print_stdout, reason = "the table is what it is run for")]
pub(crate) async fn run(options: Options) -> Result<(), BoxError> {
    let faults = match options.fault.is_empty() {
        true => Fault::value_variants().to_vec(),
        false => options.fault,
    };
    let mut day = Day::begin().await?;
    for fault in faults {
        day.table.begin(fault);
        if let Err(error) = fault.happen(&mut day).await {
            day.table.row("game day", "it goes on", error, false);
        }
    }
    let (table, logs) = day.end().await?;
    match options.json {
        true => println!("{}", table.json()),
        false => println!("{table}"),
    }
    match table.differences() {
        0 => Ok(()),
        count => Err(format!(
            "{count} rows differ; logs and spans are in {}",
            logs.display()
        )
        .into()),
    }
}
