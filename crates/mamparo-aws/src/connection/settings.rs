//! How the services are reached, and the bounds of it.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::config::Credentials;
use mamparo_core::InvalidSetting;
use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_durable::handler::Listener;

use crate::names::Names;
use crate::queue::LONGEST_DELAY;

/// Settings of an [`Aws`](crate::Aws), checked.
#[derive(Clone)]
pub struct Settings {
    pub(crate) names: Names,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) scheduler_role: Option<String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) timeout: Duration,
    pub(crate) attempts: u32,
    pub(crate) in_flight: usize,
    pub(crate) retention: Duration,
    pub(crate) redelivery_limit: u32,
    pub(crate) outbox: bool,
    pub(crate) schedule_from: Duration,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) listener: Arc<dyn Listener>,
}

impl Settings {
    /// Starts from what the environment says, as every program of AWS does (`AWS_REGION`, `AWS_PROFILE`, the files in `~/.aws`, the role
    /// of a container or machine), and the defaults.
    pub fn builder() -> SettingsBuilder {
        SettingsBuilder {
            prefix: "mamparo".to_owned(),
            region: None,
            endpoint: None,
            credentials: None,
            scheduler_role: None,
            connect_timeout: Duration::from_secs(1),
            attempt_timeout: Duration::from_secs(3),
            timeout: Duration::from_secs(10),
            attempts: 3,
            in_flight: 64,
            retention: Duration::from_secs(90 * 86_400),
            redelivery_limit: 10,
            outbox: true,
            schedule_from: Duration::from_secs(60),
            clock: Arc::new(SystemClock),
            listener: Arc::new(()),
        }
    }
}

/// Makes [`Settings`].
///
/// ```
/// use mamparo_aws::Settings;
///
/// assert!(Settings::builder().region("eu-west-1").prefix("shop").build().is_ok());
/// let refused = Settings::builder().prefix("my shop").build().unwrap_err();
/// assert_eq!(refused.to_string(), "prefix = \"my shop\" is refused: must be 1 to 40 of a-z, A-Z, 0-9, - and _");
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SettingsBuilder {
    prefix: String,
    region: Option<String>,
    endpoint: Option<String>,
    credentials: Option<Credentials>,
    scheduler_role: Option<String>,
    connect_timeout: Duration,
    attempt_timeout: Duration,
    timeout: Duration,
    attempts: u32,
    in_flight: usize,
    retention: Duration,
    redelivery_limit: u32,
    outbox: bool,
    schedule_from: Duration,
    clock: Arc<dyn WallClock>,
    listener: Arc<dyn Listener>,
}

impl SettingsBuilder {
    /// Sets what the names of all tables, queues and schedules begin with; `mamparo` by default.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the region; the environment's by default.
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// Sends all requests to one address, such as that of a local server, `http://127.0.0.1:5000`; each service's own by default.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Sets an access key, for local servers and tests; what the environment gives by default, which is renewed by itself.
    pub fn credentials(mut self, key: impl Into<String>, secret: impl Into<String>) -> Self {
        self.credentials = Some(Credentials::new(key, secret, None, None, "settings"));
        self
    }

    /// Sets the ARN of the role by which the scheduler sends to the queue of fires; by default the one of the plan's name in the
    /// account of the queue.
    pub fn scheduler_role(mut self, arn: impl Into<String>) -> Self {
        self.scheduler_role = Some(arn.into());
        self
    }

    /// Sets how long connecting may take; 1 s by default.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long one try of a request may take; 3 s by default. A long poll has its own time besides.
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// Sets how long a request may take with all its tries; 10 s by default. While a service is away, a call takes as long before it
    /// fails.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how often a request is tried, the first time included; 3 by default.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets how many requests one call that asks for many has under way at once; 64 by default.
    pub const fn in_flight(mut self, requests: usize) -> Self {
        self.in_flight = requests;
        self
    }

    /// Sets how long the service keeps what ended, if nobody forgets it before; 90 days by default.
    ///
    /// The net under the engine's own retention, which should be shorter.
    pub const fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// Sets how often a message is delivered before it is buried; 10 by default.
    pub const fn redelivery_limit(mut self, deliveries: u32) -> Self {
        self.redelivery_limit = deliveries;
        self
    }

    /// Sets whether a handler's whole step is one transaction, whose effects a relay carries on; it is by default.
    pub const fn outbox(mut self, outbox: bool) -> Self {
        self.outbox = outbox;
        self
    }

    /// Sets how long a wait must be to become a schedule; 1 minute by default, 15 at most. A shorter one is a message with a delay.
    ///
    /// The scheduler promises the minute; SQS delays by whole seconds, up to 15 minutes.
    pub const fn schedule_from(mut self, wait: Duration) -> Self {
        self.schedule_from = wait;
        self
    }

    /// Sets the wall clock that says what is due; the machine's own by default.
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets who hears of it when the relay can't work, or finds a conflict; nobody by default.
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = listener;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when a name has odd characters, a number or a duration is 0, the endpoint is no `http://` or `https://`
    /// address, the role is no ARN, or one try may take longer than all.
    pub fn build(self) -> Result<Settings, InvalidSetting> {
        let names = Names::new(&self.prefix)?;
        check_region(self.region.as_deref())?;
        check_start(
            "endpoint",
            self.endpoint.as_deref(),
            &["http://", "https://"],
        )?;
        check_start("scheduler_role", self.scheduler_role.as_deref(), &["arn:"])?;
        for (setting, count) in [
            ("attempts", self.attempts as usize),
            ("in_flight", self.in_flight),
            ("redelivery_limit", self.redelivery_limit as usize),
        ] {
            positive(setting, count)?;
        }
        for (setting, duration) in [
            ("connect_timeout", self.connect_timeout),
            ("attempt_timeout", self.attempt_timeout),
            ("timeout", self.timeout),
            ("retention", self.retention),
        ] {
            let millis = usize::try_from(duration.as_millis()).unwrap_or(usize::MAX);
            positive(setting, millis)?;
        }
        if self.attempt_timeout > self.timeout {
            let value = format!("{:?}", self.attempt_timeout);
            let reason = "must be at most timeout, which bounds all tries";
            return Err(InvalidSetting::new("attempt_timeout", value, reason));
        }
        if self.schedule_from > LONGEST_DELAY {
            let value = format!("{:?}", self.schedule_from);
            let reason = "must be at most 15 min, as long as SQS delays a message";
            return Err(InvalidSetting::new("schedule_from", value, reason));
        }
        Ok(Settings {
            names,
            region: self.region,
            endpoint: self.endpoint,
            credentials: self.credentials,
            scheduler_role: self.scheduler_role,
            connect_timeout: self.connect_timeout,
            attempt_timeout: self.attempt_timeout,
            timeout: self.timeout,
            attempts: self.attempts,
            in_flight: self.in_flight,
            retention: self.retention,
            redelivery_limit: self.redelivery_limit,
            outbox: self.outbox,
            schedule_from: self.schedule_from,
            clock: self.clock,
            listener: self.listener,
        })
    }
}

fn positive(setting: &'static str, value: usize) -> Result<(), InvalidSetting> {
    if value == 0 {
        return Err(InvalidSetting::new(setting, value, "must be more than 0"));
    }
    Ok(())
}

fn check_region(region: Option<&str>) -> Result<(), InvalidSetting> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match region {
        Some(name) if name.is_empty() || !name.bytes().all(plain) => {
            let reason = "must be a region's name, such as eu-west-1";
            Err(InvalidSetting::new("region", format!("{name:?}"), reason))
        }
        _ => Ok(()),
    }
}

fn check_start(
    setting: &'static str,
    value: Option<&str>,
    starts: &[&'static str],
) -> Result<(), InvalidSetting> {
    match value {
        Some(text) if !starts.iter().any(|start| text.starts_with(start)) => {
            let reason = if setting == "endpoint" {
                "must begin with http:// or https://"
            } else {
                "must be an ARN, such as arn:aws:iam::123456789012:role/name"
            };
            Err(InvalidSetting::new(setting, format!("{text:?}"), reason))
        }
        _ => Ok(()),
    }
}

impl Debug for Settings {
    /// Without the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("prefix", &self.names.prefix())
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Debug for SettingsBuilder {
    /// Without the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettingsBuilder")
            .field("prefix", &self.prefix)
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
