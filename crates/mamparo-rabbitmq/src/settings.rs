//! Where the broker is, and the bounds of what is asked of it.

use std::fmt::{self, Debug};
use std::str::FromStr;
use std::time::Duration;

use lapin::uri::AMQPUri;
use mamparo_core::InvalidSetting;

/// The name under which the broker lists our connections.
const NAME: &str = "mamparo";

/// As many messages may wait for their confirmation at once, at most.
const MOST_UNCONFIRMED: usize = 65_536;

/// How a broker is reached; clones share nothing but the values.
#[derive(Clone)]
pub struct Settings {
    pub(crate) uri: AMQPUri,
    pub(crate) name: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) publish_timeout: Duration,
    pub(crate) unconfirmed: usize,
}

impl Settings {
    /// Starts from a URL, such as `amqp://user:password@host:5672/vhost` (`%2f` is the default virtual host), and the defaults.
    ///
    /// `amqps` needs the feature `rustls`. Without `?heartbeat=` in it, a silent peer is given up after 10 s.
    pub fn builder(url: impl Into<String>) -> SettingsBuilder {
        SettingsBuilder {
            url: url.into(),
            name: NAME.to_owned(),
            connect_timeout: Duration::from_secs(5),
            publish_timeout: Duration::from_secs(5),
            unconfirmed: 1_024,
        }
    }

    /// Returns where the broker is, without the password.
    #[must_use]
    pub fn address(&self) -> String {
        let at = &self.uri.authority;
        format!("{}:{}", at.host, at.port)
    }

    pub(crate) fn user(&self) -> &str {
        &self.uri.authority.userinfo.username
    }
}

/// Without the password.
impl Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("address", &self.address())
            .field("name", &self.name)
            .field("connect_timeout", &self.connect_timeout)
            .field("publish_timeout", &self.publish_timeout)
            .field("unconfirmed", &self.unconfirmed)
            .finish()
    }
}

/// Makes [`Settings`].
///
/// ```
/// use mamparo_rabbitmq::Settings;
///
/// assert!(Settings::builder("amqp://guest:guest@localhost/%2f").build().is_ok());
/// let refused = Settings::builder("http://localhost").build().unwrap_err();
/// assert!(refused.to_string().starts_with("url = "));
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SettingsBuilder {
    url: String,
    name: String,
    connect_timeout: Duration,
    publish_timeout: Duration,
    unconfirmed: usize,
}

impl SettingsBuilder {
    /// Sets the name under which the broker lists the connections; `mamparo` by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets how long connecting and logging in may take; 5 s by default.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long one message may take until the broker has confirmed it, connecting anew included; 5 s by default.
    pub const fn publish_timeout(mut self, timeout: Duration) -> Self {
        self.publish_timeout = timeout;
        self
    }

    /// Sets how many messages of one publisher may wait for their confirmation at once; 1 024 by default.
    pub const fn unconfirmed(mut self, messages: usize) -> Self {
        self.unconfirmed = messages;
        self
    }

    /// Checks them.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] for a URL that is none, a time limit of zero, or nothing that may wait.
    pub fn build(self) -> Result<Settings, InvalidSetting> {
        let mut uri = AMQPUri::from_str(&self.url).map_err(|_| {
            // Not the URL itself: it has the password.
            let reason = "must be like amqp://user:password@host:5672/vhost";
            InvalidSetting::new("url", "(a text that is none)", reason)
        })?;
        let encrypted = uri.scheme == lapin::uri::AMQPScheme::AMQPS;
        if encrypted && !cfg!(feature = "rustls") {
            return Err(InvalidSetting::new(
                "url",
                "amqps",
                "needs the feature `rustls`",
            ));
        }
        uri.query.heartbeat.get_or_insert(10);
        for (setting, value) in [
            ("connect_timeout", self.connect_timeout),
            ("publish_timeout", self.publish_timeout),
        ] {
            if value.is_zero() {
                return Err(InvalidSetting::new(
                    setting,
                    "0",
                    "must be longer than nothing",
                ));
            }
        }
        if self.unconfirmed == 0 || self.unconfirmed > MOST_UNCONFIRMED {
            return Err(InvalidSetting::new(
                "unconfirmed",
                self.unconfirmed,
                "must be between 1 and 65536",
            ));
        }
        Ok(Settings {
            uri,
            name: self.name,
            connect_timeout: self.connect_timeout,
            publish_timeout: self.publish_timeout,
            unconfirmed: self.unconfirmed,
        })
    }
}

/// Without the password.
impl Debug for SettingsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettingsBuilder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
