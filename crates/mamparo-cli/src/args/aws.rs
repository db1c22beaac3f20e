//! The options of `mamparo aws`.

use clap::{Subcommand, ValueEnum};

use super::typed::{Delay, Rate};

const CODES: &str = "\
Region, credentials and endpoint are looked for as every program of AWS does: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL, the files in
~/.aws, the role of a container or machine.

Exit codes:
  0  all is as planned
  1  refused: something is missing or otherwise, or there are no credentials, no region or no right to it
  2  usage
  4  a service can't be reached or does not answer
  6  the answer could not be written to stdout";

const PLAN: &str = "\
Nothing is asked of AWS. The templates hold for any account and region; in text and JSON, ARNs have the region and account that are
given, or REGION and ACCOUNT.

Exit codes:
  0  printed
  2  usage
  6  it could not be written to stdout

Examples:
  mamparo aws plan
  mamparo aws plan --rate 20/s --mean-wait 4h          how many schedules, which quotas, how many dollars
  mamparo aws plan --format cloudformation > mamparo.json
  mamparo aws plan --format terraform > mamparo.tf.json
  mamparo aws plan --format json --region eu-west-1 --account 123456789012 | jq '.roles[].policy'";

#[derive(Debug, Subcommand)]
pub(crate) enum AwsCommand {
    /// Prints all that has to be there: tables, queues, a group of schedules, roles, alarms; and what a load takes.
    Plan(PlanArgs),
    /// Creates what is missing of tables, queues and schedule group, and sets what differs of queues. Roles and alarms are the templates'.
    Apply(ReachArgs),
    /// Compares what is there with the plan, and says each difference with its remedy.
    Check(ReachArgs),
}

/// What the plan is of.
#[derive(Debug, clap::Args)]
pub(crate) struct OfArgs {
    /// What all names begin with.
    #[arg(long, value_name = "PREFIX", default_value = "mamparo")]
    pub(crate) prefix: String,

    /// The key of KMS that encrypts tables and queues, by its ARN, instead of the services' own.
    #[arg(long, value_name = "ARN")]
    pub(crate) kms_key: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = PLAN)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) of: OfArgs,

    /// How to print it.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// The region of the ARNs.
    #[arg(long, value_name = "REGION", default_value = "REGION")]
    pub(crate) region: String,

    /// The account of the ARNs: twelve digits.
    #[arg(long, value_name = "ID", default_value = "ACCOUNT", value_parser = account)]
    pub(crate) account: String,

    /// How many answers mean "not now", such as 20/s; prints what that takes.
    #[arg(long, value_name = "N/PERIOD", requires = "mean_wait")]
    pub(crate) rate: Option<Rate>,

    /// How long they wait for their next attempt, on average.
    #[arg(long, value_name = "DURATION", requires = "rate")]
    pub(crate) mean_wait: Option<Delay>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Cloudformation,
    Terraform,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CODES)]
pub(crate) struct ReachArgs {
    #[command(flatten)]
    pub(crate) of: OfArgs,

    /// The region; the environment's by default.
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,

    /// Asks this address instead of the services', such as a local server's: `http://127.0.0.1:5000`.
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,

    /// Writes JSON to stdout instead.
    #[arg(long)]
    pub(crate) json: bool,
}

fn account(text: &str) -> Result<String, String> {
    let is_account = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    match is_account || text == "ACCOUNT" {
        true => Ok(text.to_owned()),
        false => Err("it is twelve digits".to_owned()),
    }
}
