//! The three clients.

use std::fmt::{self, Debug};
use std::sync::Arc;

use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{ProvideCredentials, SharedInterceptor};
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use mamparo_durable::backend::{BackendError, Trouble};
use mamparo_durable::machine::Utc;

use super::Settings;
use crate::names::Names;

/// The services of one region and account. Clones share the clients.
///
/// ```no_run
/// use mamparo_aws::{Aws, Settings};
///
/// # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
/// let aws = Aws::connect(Settings::builder().region("eu-west-1").build()?).await?;
/// # let _ = aws;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Aws {
    inner: Arc<Inner>,
}

struct Inner {
    config: SdkConfig,
    dynamo: aws_sdk_dynamodb::Client,
    sqs: aws_sdk_sqs::Client,
    scheduler: aws_sdk_scheduler::Client,
    settings: Settings,
}

impl Aws {
    /// Finds the region and credentials, and makes the clients. Tables and queues need not be there yet.
    ///
    /// # Errors
    ///
    /// [`Trouble::Refused`] when neither the settings nor the environment name a region, or there are no credentials.
    pub async fn connect(settings: Settings) -> Result<Self, BackendError> {
        Self::connect_heard(settings, None).await
    }

    /// All requests pass by the interceptor.
    pub(crate) async fn connect_heard(
        settings: Settings,
        heard: Option<SharedInterceptor>,
    ) -> Result<Self, BackendError> {
        let config = loader(&settings).load().await;
        if config.region().is_none() {
            let words = "no region is set: set AWS_REGION, or name one in the settings";
            return Err(BackendError::new(Trouble::Refused, words));
        }
        find_credentials(&config).await?;
        let mut dynamo = aws_sdk_dynamodb::config::Builder::from(&config);
        let mut sqs = aws_sdk_sqs::config::Builder::from(&config);
        let mut scheduler = aws_sdk_scheduler::config::Builder::from(&config);
        if let Some(heard) = heard {
            dynamo.push_interceptor(heard.clone());
            sqs.push_interceptor(heard.clone());
            scheduler.push_interceptor(heard);
        }
        Ok(Self {
            inner: Arc::new(Inner {
                dynamo: aws_sdk_dynamodb::Client::from_conf(dynamo.build()),
                sqs: aws_sdk_sqs::Client::from_conf(sqs.build()),
                scheduler: aws_sdk_scheduler::Client::from_conf(scheduler.build()),
                config,
                settings,
            }),
        })
    }

    pub(crate) fn dynamo(&self) -> &aws_sdk_dynamodb::Client {
        &self.inner.dynamo
    }

    pub(crate) fn sqs(&self) -> &aws_sdk_sqs::Client {
        &self.inner.sqs
    }

    pub(crate) fn scheduler(&self) -> &aws_sdk_scheduler::Client {
        &self.inner.scheduler
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn names(&self) -> &Names {
        &self.inner.settings.names
    }

    /// The region that was found.
    pub(crate) fn region(&self) -> &str {
        self.inner.config.region().map_or("", Region::as_ref)
    }

    pub(crate) fn now(&self) -> Utc {
        Utc::of(&*self.inner.settings.clock)
    }
}

impl Debug for Aws {
    /// Without what the clients keep.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aws")
            .field("region", &self.region())
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}

/// Every request is safe to repeat: writes are conditional or carry a token, names of schedules are deterministic, and a message
/// sent twice is one of the duplicates that handlers bear. So the SDK may repeat what failed for a moment (a reset, a 5xx,
/// throttling), with its own jitter, and its bucket of tokens keeps a service that is down from being asked three times as often.
/// What lasts longer is the engine's to wait for.
fn loader(settings: &Settings) -> ConfigLoader {
    let retries = RetryConfig::standard().with_max_attempts(settings.attempts);
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(settings.connect_timeout)
        .operation_attempt_timeout(settings.attempt_timeout)
        .operation_timeout(settings.timeout)
        .build();
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http)
        .retry_config(retries)
        .timeout_config(timeouts);
    if let Some(region) = &settings.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(endpoint) = &settings.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    if let Some(credentials) = &settings.credentials {
        loader = loader.credentials_provider(credentials.clone());
    }
    loader
}

/// Asked now, so that whoever starts an engine hears of it, and not the first request.
async fn find_credentials(config: &SdkConfig) -> Result<(), BackendError> {
    let missing = || {
        let words = "no credentials were found: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or give this machine a role";
        BackendError::new(Trouble::Refused, words)
    };
    let provider = config.credentials_provider().ok_or_else(missing)?;
    let found = provider.provide_credentials().await;
    found
        .map(drop)
        .map_err(|error| missing().from_source(error))
}
