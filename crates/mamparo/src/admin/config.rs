//! The settings of the window.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use mamparo_core::{InvalidSetting, Observer};

use super::feed::Feed;
use super::guard::Guard;
use super::router::{self, Shared};
use super::token::Token;
use crate::policy::Policies;

/// As many streams and events as can be asked for: more is a mistake.
const MOST: usize = 65_536;

/// Makes the router; see the [module](super).
#[must_use]
pub struct Admin {
    policies: Policies,
    ready: BTreeSet<String>,
    token: Option<String>,
    only: Option<BTreeSet<String>>,
    observer: Option<Arc<dyn Observer>>,
    pub(super) streams: Streams,
}

/// The settings of the streams of events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    pub(super) most: usize,
    pub(super) events: usize,
    pub(super) snapshot_every: Duration,
    pub(super) keep_alive: Duration,
    pub(super) longest: Duration,
}

impl Admin {
    /// Shows these policies, as they are loaded last.
    pub fn new(policies: &Policies) -> Self {
        Self {
            policies: policies.clone(),
            ready: BTreeSet::new(),
            token: None,
            only: None,
            observer: None,
            streams: Streams {
                most: 64,
                events: 256,
                snapshot_every: Duration::from_secs(5),
                keep_alive: Duration::from_secs(15),
                longest: Duration::from_secs(3600),
            },
        }
    }

    /// Chooses the dependencies without which the program is not ready; none by default.
    ///
    /// One that cannot be called makes `/health/ready` say 503 for as long as its breaker is open. Choose few: a fleet that is
    /// taken out of service because one dependency of many fails has made the failure larger.
    pub fn ready<N: Into<String>>(mut self, dependencies: impl IntoIterator<Item = N>) -> Self {
        self.ready = dependencies.into_iter().map(Into::into).collect();
        self
    }

    /// Lets whoever has the token force breakers open, close them and reset them; by default nobody can.
    ///
    /// Make it at random: `openssl rand -base64 32`. It is from [`MIN_TOKEN`](super::MIN_TOKEN) to
    /// [`MAX_TOKEN`](super::MAX_TOKEN) characters of those that a bearer token may have (RFC 6750 §2.1).
    pub fn actions(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Allows actions on these dependencies only; on all by default.
    pub fn actions_only_on<N: Into<String>>(
        mut self,
        dependencies: impl IntoIterator<Item = N>,
    ) -> Self {
        self.only = Some(dependencies.into_iter().map(Into::into).collect());
        self
    }

    /// Reports every action to an observer, those that were refused too.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets how many streams of events there may be at once; 64 by default. The next is answered with 503.
    pub const fn max_streams(mut self, streams: usize) -> Self {
        self.streams.most = streams;
        self
    }

    /// Sets how many events are kept for a reader who is slow; 256 by default. Past them it loses the oldest, and hears how many.
    pub const fn max_events(mut self, events: usize) -> Self {
        self.streams.events = events;
        self
    }

    /// Sets how often a stream has a snapshot; every 5 s by default. A reader who is slow gets the newest.
    pub const fn snapshot_every(mut self, time: Duration) -> Self {
        self.streams.snapshot_every = time;
        self
    }

    /// Sets after how long without an event a stream says that it is still there; 15 s by default.
    pub const fn keep_alive(mut self, time: Duration) -> Self {
        self.streams.keep_alive = time;
        self
    }

    /// Sets how long a stream lasts; an hour by default. Whoever reads it then asks again, as browsers do by themselves.
    pub const fn max_stream_time(mut self, time: Duration) -> Self {
        self.streams.longest = time;
        self
    }

    /// Checks the settings, and makes the router.
    ///
    /// # Errors
    ///
    /// Refuses a token that is too short, too long or has other characters, names that no policy has, no stream or event, or more
    /// than 65 536, and times of zero. The error never has the token in it.
    pub fn router(self) -> Result<Router, InvalidSetting> {
        let token = self.token.as_deref().map(Token::checked).transpose()?;
        self.streams.check()?;
        self.check_names("ready", &self.ready)?;
        if let Some(only) = &self.only {
            self.check_names("actions_only_on", only)?;
        }
        if let (None, Some(_)) = (&token, &self.only) {
            let reason = "needs actions: without a token there are none";
            return Err(InvalidSetting::new("actions_only_on", "some", reason));
        }
        Ok(router::router(Shared {
            feed: Arc::new(Feed::new(self.policies.clone(), self.streams)),
            policies: self.policies,
            ready: self.ready,
            guard: token.map(Guard::new),
            only: self.only,
            observer: self.observer,
        }))
    }

    fn check_names(
        &self,
        setting: &'static str,
        names: &BTreeSet<String>,
    ) -> Result<(), InvalidSetting> {
        let unknown = names
            .iter()
            .find(|name| self.policies.dependency(name).is_err());
        match unknown {
            Some(name) => {
                let reason = "must be dependencies that the policies name";
                Err(InvalidSetting::new(setting, name, reason))
            }
            None => Ok(()),
        }
    }
}

impl Streams {
    fn check(&self) -> Result<(), InvalidSetting> {
        for (setting, value) in [("max_streams", self.most), ("max_events", self.events)] {
            if value == 0 || value > MOST {
                let reason = "must be from 1 to 65536";
                return Err(InvalidSetting::new(setting, value, reason));
            }
        }
        for (setting, value) in [
            ("snapshot_every", self.snapshot_every),
            ("keep_alive", self.keep_alive),
            ("max_stream_time", self.longest),
        ] {
            if value.is_zero() {
                let reason = "must be longer than zero";
                return Err(InvalidSetting::new(setting, "0s", reason));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin")
            .field("ready", &self.ready)
            .field("actions", &self.token.is_some())
            .field("actions_only_on", &self.only)
            .field("streams", &self.streams)
            .finish_non_exhaustive()
    }
}
