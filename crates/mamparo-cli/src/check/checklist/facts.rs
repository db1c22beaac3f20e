//! What is known of one dependency, and what an answer is made of.

use mamparo::policy::{Effective, Outline, Plan};
use serde::Serialize;

use crate::check::chain::Path;
use crate::check::service::Service;

/// What came of a question, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// The policy answers it.
    Answered,
    /// Only a person knows.
    Open,
    /// The policy answers it, and has a gap there.
    Missing,
}

/// An answer from a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: Status,
    pub(super) says: String,
}

pub(super) fn answered(says: impl Into<String>) -> Answer {
    Answer {
        status: Status::Answered,
        says: says.into(),
    }
}

pub(super) fn open(says: impl Into<String>) -> Answer {
    Answer {
        status: Status::Open,
        says: says.into(),
    }
}

pub(super) fn missing(says: impl Into<String>) -> Answer {
    Answer {
        status: Status::Missing,
        says: says.into(),
    }
}

/// One dependency of one service.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) service: &'a Service,
    pub(super) name: &'a str,
    pub(super) plan: Plan,
    pub(super) paths: &'a [Path],
    settings: Vec<Effective>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(service: &'a Service, outline: &'a Outline, paths: &'a [Path]) -> Self {
        Self {
            service,
            name: outline.name(),
            plan: outline.plan(),
            paths,
            settings: outline.effective(),
        }
    }

    /// The value that holds; none where its part is off.
    pub(super) fn setting(&self, path: &str) -> Option<&str> {
        let found = self.settings.iter().find(|it| it.path == path)?;
        Some(found.value.trim_matches('"'))
    }

    /// The value that holds, unless it says that there is none.
    pub(super) fn some(&self, path: &str) -> Option<&str> {
        self.setting(path).filter(|value| *value != "none")
    }

    /// The value that somebody wrote.
    pub(super) fn written(&self, path: &str) -> Option<&str> {
        let found = self.settings.iter().find(|it| it.path == path)?;
        found
            .origin
            .is_written()
            .then(|| found.value.trim_matches('"'))
    }

    pub(super) fn is_grpc(&self) -> bool {
        self.setting("protocol") == Some("grpc")
    }

    /// The header of its idempotency keys, where requests get one.
    pub(super) fn key(&self) -> Option<&str> {
        match self.setting("idempotency_key") {
            Some("off") => None,
            Some(_) => Some("idempotency-key"),
            None => self.setting("idempotency_key.header"),
        }
    }

    /// Whether requests that take effect as often as they are sent are sent again, and nothing tells the resend.
    pub(super) fn repeats_blindly(&self) -> bool {
        let methods = self.written("retry.methods").unwrap_or_default();
        let listed = ["\"POST\"", "\"PATCH\""]
            .iter()
            .any(|it| methods.contains(it));
        let any = self.setting("hedge.idempotent_only") == Some("false");
        self.sends_again() && self.key().is_none() && (listed || any)
    }

    pub(super) fn sends_again(&self) -> bool {
        self.plan.attempts() > 1
    }
}

/// `1 attempt`, `3 attempts`
pub(super) fn attempts(number: u32) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} attempt{plural}")
}
