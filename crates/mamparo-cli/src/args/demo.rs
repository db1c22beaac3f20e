//! The options of `mamparo demo`.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::typed::{self, Delay};

const NOTES: &str = "\
Exit codes:
  0  every proof holds
  1  one does not; its line says FAILED
  2  usage
  4  the servers could not be started
  6  the picture could not be written";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct DemoArgs {
    /// How many requests are made to the shop; one in eight is an order.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(8..=1_000))]
    pub(crate) requests: u32,

    /// Draws the breaker's time line into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,

    /// Writes one JSON object instead.
    #[arg(long)]
    pub(crate) json: bool,

    /// Exports the spans and metrics to an OpenTelemetry collector, by OTLP over gRPC.
    #[arg(long, value_name = "URL", value_parser = typed::collector)]
    pub(crate) otlp: Option<String>,

    /// Instead, runs a shop that goes on, with its metrics there under /metrics, for Prometheus to scrape: 127.0.0.1:9464, say.
    ///
    /// It is well for a while; then six of its dependencies, its engine and its outboxes come into troubles of their own, until you stop
    /// it. Each alert of docs/operating has what sets it off, and each panel of the dashboard something to draw.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["requests", "plot", "json", "otlp"])]
    pub(crate) metrics: Option<SocketAddr>,

    /// How long all is well before the trouble begins.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10m",
        requires = "metrics"
    )]
    pub(crate) well: Delay,

    /// Consumes a queue of this RabbitMQ too, `amqp://USER:PASSWORD@HOST/VHOST`, which gets a dead letter. It declares `mamparo.demo` and
    /// leaves it.
    #[arg(long, value_name = "URL", requires = "metrics")]
    pub(crate) amqp: Option<String>,
}
