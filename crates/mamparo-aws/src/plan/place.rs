//! Where the resources are, as ARNs say it.

/// An account's part of a region: what stands in an ARN before a name.
///
/// ```
/// use mamparo_aws::plan::Place;
///
/// let place = Place::new("eu-west-1", "123456789012");
/// assert_eq!(place.queue("mamparo-fires"), "arn:aws:sqs:eu-west-1:123456789012:mamparo-fires");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    partition: String,
    region: String,
    account: String,
}

impl Place {
    /// Makes a place of a region and an account.
    #[must_use]
    pub fn new(region: impl Into<String>, account: impl Into<String>) -> Self {
        let region = region.into();
        let partition = match region.split('-').next() {
            Some("cn") => "aws-cn",
            _ if region.starts_with("us-gov-") => "aws-us-gov",
            _ => "aws",
        };
        Self {
            partition: partition.to_owned(),
            region,
            account: account.into(),
        }
    }

    /// Makes one that CloudFormation fills in.
    pub(super) fn cloudformation() -> Self {
        Self::filled("${AWS::Partition}", "${AWS::Region}", "${AWS::AccountId}")
    }

    /// Makes one that Terraform fills in.
    pub(super) fn terraform() -> Self {
        Self::filled(
            "${data.aws_partition.current.partition}",
            "${data.aws_region.current.region}",
            "${data.aws_caller_identity.current.account_id}",
        )
    }

    fn filled(partition: &str, region: &str, account: &str) -> Self {
        Self {
            partition: partition.to_owned(),
            region: region.to_owned(),
            account: account.to_owned(),
        }
    }

    /// Reads the place of what has this ARN; `None` if it is none.
    #[must_use]
    pub fn of(arn: &str) -> Option<Self> {
        let mut parts = arn.split(':');
        let (Some("arn"), Some(partition)) = (parts.next(), parts.next()) else {
            return None;
        };
        let (region, account) = (parts.nth(1)?, parts.next()?);
        parts.next()?;
        Some(Self::filled(partition, region, account))
    }

    /// Returns the account.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }

    /// Returns the ARN of a table.
    #[must_use]
    pub fn table(&self, name: &str) -> String {
        self.arn("dynamodb", &format!("table/{name}"))
    }

    /// Returns the ARN of a queue.
    #[must_use]
    pub fn queue(&self, name: &str) -> String {
        self.arn("sqs", name)
    }

    /// Returns the ARN of a group of schedules.
    #[must_use]
    pub fn group(&self, name: &str) -> String {
        self.arn("scheduler", &format!("schedule-group/{name}"))
    }

    /// Returns the ARN that all schedules of a group have, and no other.
    #[must_use]
    pub fn schedules(&self, group: &str) -> String {
        self.arn("scheduler", &format!("schedule/{group}/*"))
    }

    /// Returns the ARN of a role, which has no region.
    #[must_use]
    pub fn role(&self, name: &str) -> String {
        let Self {
            partition, account, ..
        } = self;
        format!("arn:{partition}:iam::{account}:role/{name}")
    }

    /// Returns who stands for the whole account.
    pub(super) fn root(&self) -> String {
        let Self {
            partition, account, ..
        } = self;
        format!("arn:{partition}:iam::{account}:root")
    }

    fn arn(&self, service: &str, name: &str) -> String {
        let Self {
            partition,
            region,
            account,
        } = self;
        format!("arn:{partition}:{service}:{region}:{account}:{name}")
    }
}
