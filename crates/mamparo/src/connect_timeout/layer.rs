//! Settings of a connection's limit.

use std::time::Duration;

use mamparo_core::{Dependency, InvalidSetting};
use tower_layer::Layer;

use super::ConnectTimeout;

/// How long a connection may take by default: 1 s. A healthy one takes a few round trips.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Bounds the making of a connection; see the [module](super).
#[derive(Clone, Copy, Debug)]
pub struct ConnectTimeoutLayer {
    limit: Option<Duration>,
    dependency: Dependency,
}

impl ConnectTimeoutLayer {
    /// Bounds a connection by a limit.
    ///
    /// # Errors
    ///
    /// Refuses zero: no connection could be made.
    pub fn new(limit: Duration) -> Result<Self, InvalidSetting> {
        if limit.is_zero() {
            return Err(InvalidSetting::new(
                "connect_timeout",
                "0s",
                "must be longer than zero: for no limit use `ConnectTimeoutLayer::none`",
            ));
        }
        Ok(Self {
            limit: Some(limit),
            ..Self::none()
        })
    }

    /// Sets no limit: the operating system's own, of a minute or more, is left.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            limit: None,
            dependency: Dependency::UNNAMED,
        }
    }

    /// Names the dependency; a connector does not always run inside of a call that could tell.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Dependency>) -> Self {
        self.dependency = dependency.into();
        self
    }
}

impl Default for ConnectTimeoutLayer {
    /// Bounds a connection by [`DEFAULT_CONNECT_TIMEOUT`].
    fn default() -> Self {
        Self {
            limit: Some(DEFAULT_CONNECT_TIMEOUT),
            ..Self::none()
        }
    }
}

impl<S> Layer<S> for ConnectTimeoutLayer {
    type Service = ConnectTimeout<S>;

    fn layer(&self, inner: S) -> ConnectTimeout<S> {
        ConnectTimeout::new(inner, self.limit, self.dependency)
    }
}
