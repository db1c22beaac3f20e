//! The options of `mamparo events`.

use clap::Subcommand;

use crate::defer::Place;

const CODES: &str = "\
Exit codes:
  0  done
  1  refused: no such event is parked
  2  usage, or a file that is not there
  4  the store can't be opened or does not answer, or there are no events in it
  6  the answer could not be written to stdout

Examples:
  mamparo events list --store sqlite:shop.db
  mamparo events show 17 --store sqlite:shop.db
  mamparo events requeue 17 --store postgres://shop@localhost/shop --schema orders_mamparo
  mamparo events discard 17 --store sqlite:shop.db --reason 'the order was a test'";

#[derive(Debug, Subcommand)]
#[command(after_help = CODES)]
pub(crate) enum EventsCommand {
    /// Lists parked events, oldest first, and why each is.
    List(ParkedArgs),
    /// Shows one, with its headers and payload.
    Show(ParkedOneArgs),
    /// Gives them back to the relay, as if they had never failed: each leaves before what waits behind it, within seconds.
    Requeue(ParkedManyArgs),
    /// Removes them for good. What waits behind them goes on without them.
    Discard(ParkedDiscardArgs),
}

/// Where the outbox is.
#[derive(Debug, clap::Args)]
pub(crate) struct OutboxArgs {
    /// Where the outbox is: `sqlite:FILE`, or `postgres://USER@HOST/DATABASE`.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Place,

    /// The schema that it is in, of a PostgreSQL; `mamparo` by default.
    #[arg(long, value_name = "NAME")]
    pub(crate) schema: Option<String>,

    /// Writes JSON to stdout instead.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ParkedArgs {
    #[command(flatten)]
    pub(crate) outbox: OutboxArgs,

    /// Only those after this number.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) after: i64,

    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ParkedOneArgs {
    #[command(flatten)]
    pub(crate) outbox: OutboxArgs,

    /// Its number, as `list` shows it.
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) number: i64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ParkedManyArgs {
    #[command(flatten)]
    pub(crate) outbox: OutboxArgs,

    /// Their numbers, as `list` shows them.
    #[arg(required_unless_present = "all", value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) numbers: Vec<i64>,

    /// All that are parked, oldest first, up to --max.
    #[arg(long, conflicts_with = "numbers")]
    pub(crate) all: bool,

    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max: u32,

    /// Only says which they would be.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ParkedDiscardArgs {
    #[command(flatten)]
    pub(crate) which: ParkedManyArgs,

    /// Why; it is written to stderr for each.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
}
