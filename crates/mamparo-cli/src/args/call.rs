//! The options of `mamparo call`.

use std::path::PathBuf;

use super::typed::{self, Data, Delay, Field, Limit, Rate};
use crate::exit::CODES;

const EXAMPLES: &str = r#"Examples:
  mamparo call http://localhost:8080/items
  mamparo call http://localhost:8080/items --deadline 2s --attempts 5 --attempt-timeout 500ms
  mamparo call POST http://localhost:8080/charges -d @charge.json -H 'content-type: application/json' --idempotency-key
  mamparo call http://localhost:8080/items --hedge 100ms
  mamparo call http://localhost:8080/items --attempts 5 --rate 2/s --rate-wait 1s
  mamparo call http://localhost:8080/items --fallback '[]'
  mamparo call http://localhost:8080/items --json | jq '.attempts[].status'
  mamparo call --grpc http://localhost:50051/shop.v1.Prices/Get -d '{"item": 7}' --deadline 500ms
  mamparo call --grpc http://localhost:50051/shop.v1.Prices/Get --proto prices.proto
  mamparo call http://localhost:8080/items --otlp http://localhost:4317"#;

#[derive(Debug, clap::Args)]
#[command(
    allow_missing_positional = true,
    after_help = format!("{CODES}\n\n{EXAMPLES}"),
)]
pub(crate) struct CallArgs {
    /// GET by default, or POST with --data.
    pub(crate) method: Option<String>,

    /// The address to call, http or https; with --grpc, `http://host:port/package.Service/Method`.
    pub(crate) url: String,

    /// Calls a unary gRPC method, over HTTP/2: --data is its message as JSON, and so is the answer.
    ///
    /// The server says by reflection what its messages look like, unless --proto does. -H sends metadata.
    #[arg(long, conflicts_with_all = ["method", "idempotency_key", "fallback"])]
    pub(crate) grpc: bool,

    /// The file that describes the service, for a server without reflection.
    #[arg(long, value_name = "FILE", requires = "grpc")]
    pub(crate) proto: Option<PathBuf>,

    /// Where imports of --proto are looked for; may be given several times. Beside that file by default.
    #[arg(
        short = 'I',
        long = "proto-path",
        value_name = "DIR",
        requires = "proto"
    )]
    pub(crate) proto_path: Vec<PathBuf>,

    /// A header field; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<Field>,

    /// The request's body: text, @file, or @- for stdin.
    #[arg(short, long, value_name = "DATA")]
    pub(crate) data: Option<Data>,

    /// Says that the method may take effect twice without harm, so that after UNAVAILABLE it is sent again whatever became of it, or
    /// hedged. Its description says so too, where it has an `idempotency_level`.
    #[arg(long, requires = "grpc")]
    pub(crate) idempotent: bool,

    /// A gRPC service config, as JSON: per method it says how often and when a call is sent again, or hedged.
    #[arg(long, value_name = "FILE", requires = "grpc", conflicts_with_all = ["attempts", "hedge", "idempotent"])]
    pub(crate) service_config: Option<PathBuf>,

    /// How long the whole operation may take, its answer's body included; `none` for no limit.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) deadline: Limit,

    /// How many attempts at most, 3 by default, and 2 with --hedge; the original counts, so 1 means no resend.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) attempts: Option<u32>,

    /// How long one attempt may take until its answer begins; `none` for no limit but the deadline.
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    pub(crate) attempt_timeout: Limit,

    /// How long a connection may take: name, TCP and TLS together; `none` for no limit but the attempt's.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub(crate) connect_timeout: Limit,

    /// Sends the request once more beside an attempt that has taken this long, and takes the better answer, instead of
    /// sending a failed one again after a wait. An unsafe request without a key is sent once all the same.
    #[arg(long, value_name = "DELAY")]
    pub(crate) hedge: Option<Delay>,

    /// Lets attempts pass at a rate, such as 5/s or 100/m; a resend is charged like the original.
    #[arg(long, value_name = "N/PERIOD")]
    pub(crate) rate: Option<Rate>,

    /// How long an attempt may wait for its turn under --rate; without it, one too many is rejected at once.
    #[arg(long, value_name = "DURATION", requires = "rate")]
    pub(crate) rate_wait: Option<Delay>,

    /// The answer to give instead, as a 200, where the server can't be reached, does not answer in time or is
    /// unavailable, or where --rate rejected the call: text, or @file.
    #[arg(long, value_name = "DATA")]
    pub(crate) fallback: Option<Data>,

    /// Sends an idempotency key, the same on each attempt, so that an unsafe request may be sent again. Only for
    /// a server that honours it. KEY is sent as it is written; without one, a key is made.
    #[arg(long, value_name = "KEY", num_args = 0..=1, require_equals = true)]
    pub(crate) idempotency_key: Option<Option<String>>,

    /// What to call the other side in messages and spans; the URL's host and port by default.
    #[arg(long, value_name = "NAME")]
    pub(crate) dependency: Option<String>,

    /// Writes one JSON object to stdout instead, with the answer and all that happened.
    #[arg(long)]
    pub(crate) json: bool,

    /// Writes the answer's status and headers before its body.
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) include: bool,

    /// Exports the spans and metrics to an OpenTelemetry collector, by OTLP over gRPC.
    #[arg(long, value_name = "URL", value_parser = typed::collector)]
    pub(crate) otlp: Option<String>,
}
