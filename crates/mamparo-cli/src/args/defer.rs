//! The options of `mamparo engine`, `mamparo tx`, `mamparo dlq` and `mamparo reconcile`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Subcommand;
use mamparo_durable::machine::{State, TransactionId, Utc};

use mamparo_telemetry::durable::is_traceparent;

use super::messages::Filter;
use super::typed::{self, Data, Delay, Field, Keep, Rate};
use crate::defer::Place;

const CODES: &str = "\
Exit codes:
  0  done
  1  refused: no such transaction or dead letter, or its state does not allow it
  2  usage, or a file that is not there
  4  the store can't be opened or does not answer, or the engine ended by itself
  6  the answer could not be written to stdout";

const RUN: &str = "\
Signals: SIGTERM and SIGINT stop it, and give back what could not be finished in time; SIGHUP loads the policies anew, all or nothing.

Examples:
  mamparo engine run --store sqlite:engine.db --policy policies.toml
  mamparo engine run --store sqlite:engine.db --policy policies.toml --rate 10/s -H 'authorization: Bearer …'
  mamparo engine run --store sqlite:engine.db --policy policies.toml --metrics 127.0.0.1:9464
  mamparo engine run --store sqlite:engine.db,amqp://guest:guest@localhost/%2f --policy policies.toml";

const TX: &str = "\
Examples:
  mamparo tx submit payment-1 --store sqlite:engine.db --policy policies.toml --dependency psp http://localhost:8080/charges -d '5 EUR'
  mamparo tx show payment-1 --store sqlite:engine.db
  mamparo tx list --store sqlite:engine.db --state FAILED --json
  mamparo tx retry-now payment-1 --store sqlite:engine.db --reason 'the provider is back'";

/// Where the transactions are.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    /// Where the transactions are: `sqlite:FILE`, `postgres://USER@HOST/DATABASE`, or `aws:PREFIX`; with
    /// `,amqp://USER:PASSWORD@HOST/VHOST` behind it, their answers and requests are in that RabbitMQ.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Place,

    /// Writes JSON to stdout instead.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Sends what is due, through the policies' stacks, until it is told to stop.
    Run(RunArgs),
    /// Says how many transactions are in which state, how late the latest is, and what is in the queues.
    #[command(after_help = CODES)]
    Status(StatusArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{CODES}\n\n{RUN}"))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// A policy file or a folder of them; may be given several times. `defer` says which answers mean "not now".
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) policy: Vec<PathBuf>,

    /// A header that each request is sent with, such as a token, which is not stored; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<Field>,

    /// How many requests are sent at a time, to all dependencies together.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) concurrency: u32,

    /// Sends at this rate at most, all engines on the store together, such as 10/s; what comes too early waits for its turn.
    #[arg(long, value_name = "N/PERIOD")]
    pub(crate) rate: Option<Rate>,

    /// How often the store is looked at for what another process wrote.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub(crate) poll: Delay,

    /// How often the reconciler looks for what is stuck.
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub(crate) reconcile_every: Delay,

    /// How long an answer may take until its request is sent again.
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub(crate) answer_within: Delay,

    /// How long a transaction is kept after its end, with its history; `forever` keeps all.
    #[arg(long, value_name = "DURATION", default_value = "30d")]
    pub(crate) keep: Keep,

    /// How long a stop lets go on what has begun.
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub(crate) drain: Delay,

    /// Serves metrics there under /metrics, for Prometheus to scrape: 127.0.0.1:9464, say.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,

    /// Sends a span of each send and of each of its attempts to a collector, over OTLP/gRPC, such as that at `http://localhost:4317`.
    #[arg(long, value_name = "URL", value_parser = typed::collector)]
    pub(crate) otlp: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Shows it again and again, every two seconds unless it is said, until it is interrupted.
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "2s")]
    pub(crate) watch: Option<Delay>,
}

#[derive(Debug, Subcommand)]
#[command(after_help = format!("{CODES}\n\n{TX}"))]
pub(crate) enum TxCommand {
    /// Begins a transaction: the engine sends its request, and sends it again while the answer means "not now".
    Submit(SubmitArgs),
    /// Shows a transaction and its history.
    Show(OneArgs),
    /// Lists transactions by id.
    List(ListArgs),
    /// Says that it is done otherwise; it is not sent again.
    Resolve(OperateArgs),
    /// Calls it off, while it waits after a refusal.
    Cancel(OperateArgs),
    /// Makes the waiting attempt now, or at another instant.
    RetryNow(RetryArgs),
}

#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct SubmitArgs {
    /// Its name, chosen by you: submitted twice, it is the same transaction.
    #[arg(value_parser = id)]
    pub(crate) id: TransactionId,

    /// POST by default.
    pub(crate) method: Option<String>,

    /// Where the request goes; a path is of the dependency's `url` in the policies.
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Whose policy holds.
    #[arg(long, value_name = "NAME")]
    pub(crate) dependency: String,

    /// A policy file or a folder of them: how many attempts are made, and until when. Without it, the defaults.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Vec<PathBuf>,

    /// Whom it is for.
    #[arg(long, value_name = "NAME")]
    pub(crate) customer: Option<String>,

    /// A header field, which is stored; may be given several times. Secrets are not stored: give them to `engine run`.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<Field>,

    /// The span that it begins in (W3C Trace Context), for the spans of its sends to link; `TRACEPARENT` of the environment by default.
    #[arg(long, value_name = "TRACEPARENT", value_parser = traceparent)]
    pub(crate) traceparent: Option<String>,

    /// The request's body: text, @file, or @- for stdin.
    #[arg(short, long, value_name = "DATA")]
    pub(crate) data: Option<Data>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OneArgs {
    /// The transaction.
    #[arg(value_parser = id)]
    pub(crate) id: TransactionId,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Only those in this state, such as SCHEDULED.
    #[arg(long, value_parser = state)]
    pub(crate) state: Option<State>,

    /// Only those to this dependency.
    #[arg(long, value_name = "NAME")]
    pub(crate) dependency: Option<String>,

    /// Only ids after this one.
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) after: Option<TransactionId>,

    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OperateArgs {
    #[command(flatten)]
    pub(crate) one: OneArgs,

    /// Who did it, or why; it is kept in the history.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) operate: OperateArgs,

    /// At this instant, in UTC, such as 2030-01-31T08:00:00Z; now by default.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub(crate) at: Option<Utc>,
}

#[derive(Debug, Subcommand)]
#[command(after_help = CODES)]
pub(crate) enum DlqCommand {
    /// Lists dead letters, oldest first.
    List(DeadArgs),
    /// Shows one, with its transaction.
    Show(DeadOneArgs),
    /// Puts them back into their queue, as if never delivered. Handling is idempotent, so that this is safe once the cause is mended.
    Requeue(RequeueArgs),
    /// Removes them for good.
    Discard(DiscardArgs),
}

/// Where dead letters are.
#[derive(Debug, clap::Args)]
pub(crate) struct HeapArgs {
    /// Where the transactions are: `sqlite:FILE`, `postgres://USER@HOST/DATABASE`, or `aws:PREFIX`; with
    /// `,amqp://USER:PASSWORD@HOST/VHOST` behind it, their answers and requests are in that RabbitMQ.
    #[arg(long, value_name = "STORE", required_unless_present = "amqp")]
    pub(crate) store: Option<Place>,

    /// Those of a RabbitMQ instead: `amqp://USER:PASSWORD@HOST/VHOST`.
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub(crate) amqp: Option<String>,

    /// Writes JSON to stdout instead.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeadArgs {
    #[command(flatten)]
    pub(crate) heap: HeapArgs,

    /// Only of this queue: answers, fires or requests; of a RabbitMQ, its name without `.dlq`.
    #[arg(long, value_name = "QUEUE", required_unless_present = "store")]
    pub(crate) queue: Option<String>,

    /// Only those of which this holds: id, reason, detail, type or header.NAME, such as `reason=exhausted`.
    #[arg(long = "filter", value_name = "KEY=TEXT", requires = "amqp")]
    pub(crate) filters: Vec<Filter>,

    /// How many at most of each queue.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeadOneArgs {
    #[command(flatten)]
    pub(crate) heap: HeapArgs,

    /// Its queue: answers, fires or requests; of a RabbitMQ, its name without `.dlq`.
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: String,

    /// Its number, as `list` shows it. That of a RabbitMQ is its place: it shifts once any letter is put back or discarded.
    pub(crate) number: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RequeueArgs {
    #[command(flatten)]
    pub(crate) heap: HeapArgs,

    /// The queue: answers, fires or requests; of a RabbitMQ, its name without `.dlq`.
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: String,

    /// Only those of which this holds: id, reason, detail, type or header.NAME, such as `reason=exhausted`.
    #[arg(long = "filter", value_name = "KEY=TEXT", requires = "amqp")]
    pub(crate) filters: Vec<Filter>,

    /// At this rate at most, such as 10/s.
    #[arg(long, value_name = "N/PERIOD", requires = "amqp")]
    pub(crate) rate: Option<Rate>,

    /// Their numbers, as `list` shows them. Those of a RabbitMQ are places: they shift once any letter is put back or discarded.
    #[arg(required_unless_present_any = ["all", "filters"])]
    pub(crate) numbers: Vec<u64>,

    /// All of the queue, oldest first, up to --max.
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
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    pub(crate) which: RequeueArgs,

    /// Why; it is kept, or written to stderr for each of a RabbitMQ's.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CODES)]
pub(crate) struct ReconcileArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// A policy file or a folder of them. Without it, the defaults.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Vec<PathBuf>,

    /// How long a transaction may be scheduled past its instant, or in between two states.
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    pub(crate) patience: Delay,

    /// How long an answer may take until its request is sent again.
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub(crate) answer_within: Delay,
}

fn id(text: &str) -> Result<TransactionId, String> {
    TransactionId::new(text).map_err(|error| error.to_string())
}

fn traceparent(text: &str) -> Result<String, String> {
    let refuse = || "write it as 00-TRACE-SPAN-FLAGS, all in hex and in small letters".to_owned();
    is_traceparent(text)
        .then(|| text.to_owned())
        .ok_or_else(refuse)
}

fn instant(text: &str) -> Result<Utc, String> {
    text.parse::<Utc>().map_err(|error| error.to_string())
}

fn state(text: &str) -> Result<State, String> {
    State::parse(&text.to_ascii_uppercase().replace('-', "_")).ok_or_else(|| {
        let all = State::ALL.map(State::as_str);
        format!("it is one of {}", all.join(", "))
    })
}
