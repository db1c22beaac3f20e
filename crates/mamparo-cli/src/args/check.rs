//! The options of `mamparo check` and `mamparo explain`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::Rate;

const CHECK: &str = r#"Exit codes:
  0  nothing contradicts itself; there may be warnings
  1  refused: an error, or a warning with --deny-warnings
  2  usage, or a file that is not there
  6  the report could not be written

The environment is laid over the files, as it is when a program loads them.

Examples:
  mamparo check policies.toml
  mamparo check policies.toml --deny-warnings --format sarif > policies.sarif
  mamparo check shop/ orders/ inventory.toml       the plan of a chain: each of them is one service
  mamparo check shop/ orders/ --svg > chain.svg    who calls whom, as a picture
  mamparo check policies.toml --checklist          what else there is to know before it goes live
  mamparo check policies.toml --watch              again whenever it changes
  MAMPARO__CATALOG__RETRY__MAX_ATTEMPTS=5 mamparo check policies.toml"#;

const EXPLAIN: &str = r#"Exit codes:
  0  explained
  1  the policies are refused, and `mamparo check` says so too
  2  usage, or a file or a dependency that is not there
  6  it could not be written

Examples:
  mamparo explain catalog --policy policies.toml
  mamparo explain catalog --policy policies.toml --traffic 10000/m
  mamparo explain --policy policies.toml --markdown >> README.md"#;

#[derive(Debug, clap::Args)]
#[command(after_help = CHECK)]
pub(crate) struct CheckArgs {
    /// Policy files: .toml, .yaml, .yml or .json. Each is one service; a folder is one too, and its files are loaded together.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// How to report: for people, for a program, or for a code scanner (SARIF 2.1.0).
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Report::Text)]
    pub(crate) format: Report,

    /// Draws who calls whom, as a Mermaid flow chart, instead of a report.
    #[arg(long, conflicts_with = "format")]
    pub(crate) mermaid: bool,

    /// Draws the same as a picture instead, in SVG, which needs nothing else and suits light and dark pages.
    #[arg(long, conflicts_with_all = ["format", "mermaid"])]
    pub(crate) svg: bool,

    /// Asks what there is to know of each dependency: answered from its policy where it can be, open where only a person knows.
    #[arg(long, conflicts_with_all = ["mermaid", "svg"])]
    pub(crate) checklist: bool,

    /// Exits with 1 on a warning too.
    #[arg(long)]
    pub(crate) deny_warnings: bool,

    /// Checks again whenever a file changes, or on SIGHUP, until it is stopped.
    #[arg(long, conflicts_with_all = ["mermaid", "svg"])]
    pub(crate) watch: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Report {
    Text,
    Json,
    Sarif,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXPLAIN)]
pub(crate) struct ExplainArgs {
    /// The dependency; all of them by default.
    pub(crate) dependency: Option<String>,

    /// A policy file or a folder of them; may be given several times, and all are loaded together.
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) policy: Vec<PathBuf>,

    /// Says what the budget pays for with so much traffic, such as 10000/m.
    #[arg(long, value_name = "N/PERIOD", conflicts_with = "markdown")]
    pub(crate) traffic: Option<Rate>,

    /// Writes a table of the dependencies instead, for a service's README.
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Writes one JSON object instead.
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
}
