//! What the layers said happened between the attempts of an operation.

use std::time::{Duration, SystemTime};

use mamparo_core::event::FallbackEnd;
use mamparo_core::{Event, Kind, NotResent, Reason, Verdict, What};

/// One thing that happened in an operation.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    /// The id of its operation.
    pub(super) operation: String,
    /// When it was said.
    pub(super) said: SystemTime,
    pub(super) what: Noted,
}

/// What happened.
#[derive(Clone, Debug)]
pub(super) enum Noted {
    Wait(Wait),
    /// The attempt of this number was sent beside another, or at once for one that failed.
    Hedge(i64),
    /// The operation is not hedged, or not any more.
    NoHedge(NotResent),
    Refusal(Refusal),
    Fallback {
        instead_of: Verdict,
        ended: FallbackEnd,
    },
}

/// A wait before an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// The attempt that it is for: 2 for the first resend.
    pub(crate) before: u32,
    pub(crate) length: Duration,
    pub(crate) reason: Waits,
}

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waits {
    /// Sending again, after a failure of this kind.
    Resend { after: Kind, hinted: bool },
    /// Its turn under a rate limit.
    Turn,
    /// A place in a bulkhead.
    Place,
}

/// An attempt that a layer refused to send.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) attempt: u32,
    pub(crate) reason: Reason,
    pub(crate) retry_after: Option<Duration>,
}

impl Waits {
    /// Its name in the record: lower case, stable.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Resend { after, .. } => after.as_str(),
            Self::Turn => "rate_limit",
            Self::Place => "bulkhead",
        }
    }

    /// Whether the dependency asked for the wait.
    pub(crate) const fn is_hinted(self) -> bool {
        matches!(self, Self::Resend { hinted: true, .. })
    }

    pub(super) fn says(self) -> String {
        match self {
            Self::Resend {
                after,
                hinted: false,
            } => format!("{}: backoff", after.as_str()),
            Self::Resend { after, .. } => format!("{}: the server asked for it", after.as_str()),
            Self::Turn => "for its turn under the rate limit".to_owned(),
            Self::Place => "for a place in the bulkhead".to_owned(),
        }
    }
}

impl Note {
    /// Takes from an event what a waterfall shows.
    pub(super) fn of(event: &Event<'_>, said: SystemTime) -> Option<Self> {
        let operation = event.context.operation()?.to_string();
        let what = Noted::of(event)?;
        Some(Self {
            operation,
            said,
            what,
        })
    }

    /// Returns when it began: a wait that is over is told at its end, one to come at its beginning.
    pub(super) fn began(&self) -> SystemTime {
        match &self.what {
            Noted::Wait(wait) if !matches!(wait.reason, Waits::Resend { .. }) => {
                self.said.checked_sub(wait.length).unwrap_or(self.said)
            }
            _ => self.said,
        }
    }
}

impl Noted {
    fn of(event: &Event<'_>) -> Option<Self> {
        let attempt = event.context.attempt().max(1);
        let waited = |length, reason| {
            let before = attempt;
            Self::Wait(Wait {
                before,
                length,
                reason,
            })
        };
        Some(match event.what {
            What::ResendScheduled {
                next,
                reason: after,
                wait: length,
                hinted,
                ..
            } => Self::Wait(Wait {
                before: next,
                length,
                reason: Waits::Resend { after, hinted },
            }),
            What::RateLimitWaited { waited: length } => waited(length, Waits::Turn),
            What::QueueWaited { waited: length, .. } => waited(length, Waits::Place),
            What::HedgeSent { attempt, .. } => Self::Hedge(attempt.into()),
            What::HedgeOff { reason } => Self::NoHedge(reason),
            What::Rejected(rejection) if !rejection.sent() => Self::Refusal(Refusal {
                attempt,
                reason: rejection.reason(),
                retry_after: rejection.retry_after(),
            }),
            What::FellBack { verdict, ended } => Self::Fallback {
                instead_of: verdict,
                ended,
            },
            _ => return None,
        })
    }
}
