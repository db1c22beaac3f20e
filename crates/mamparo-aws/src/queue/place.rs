//! Where a queue is.

use aws_sdk_sqs::types::QueueAttributeName;
use mamparo_durable::backend::{BackendError, Trouble};
use tokio::sync::OnceCell;

use crate::Aws;
use crate::connection::{Service, trouble};

/// A queue by its name; its address is asked for once.
#[derive(Debug)]
pub(crate) struct Place {
    aws: Aws,
    name: String,
    address: OnceCell<Address>,
}

/// What the services call a queue.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) url: String,
    pub(crate) arn: String,
}

impl Place {
    pub(crate) const fn new(aws: Aws, name: String) -> Self {
        Self {
            aws,
            name,
            address: OnceCell::const_new(),
        }
    }

    pub(crate) const fn aws(&self) -> &Aws {
        &self.aws
    }

    /// What an error says that it is about.
    pub(crate) fn about(&self) -> String {
        format!("queue {}", self.name)
    }

    pub(crate) async fn address(&self) -> Result<&Address, BackendError> {
        self.address.get_or_try_init(|| self.find()).await
    }

    async fn find(&self) -> Result<Address, BackendError> {
        let sqs = self.aws.sqs();
        let failed = |error| trouble(Service::Sqs, &self.about(), error);
        let found = sqs.get_queue_url().queue_name(&self.name).send().await;
        let url = found.map_err(failed)?.queue_url.unwrap_or_default();
        let asked = sqs
            .get_queue_attributes()
            .queue_url(&url)
            .attribute_names(QueueAttributeName::QueueArn)
            .send()
            .await;
        let asked = asked.map_err(|error| trouble(Service::Sqs, &self.about(), error))?;
        let arn = asked.attributes.unwrap_or_default();
        match arn.get(&QueueAttributeName::QueueArn) {
            Some(arn) => Ok(Address {
                url,
                arn: arn.clone(),
            }),
            None => Err(BackendError::new(
                Trouble::Incompatible,
                format!("SQS does not say what the ARN of {} is", self.about()),
            )),
        }
    }
}
