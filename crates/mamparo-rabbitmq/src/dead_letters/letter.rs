//! One dead letter, as a person sees it.

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::AMQPValue;

use crate::message::{attempts_made, header, text};
use crate::{Topology, headers};

/// A dead letter: why, when, and the message itself.
#[derive(Clone, Debug)]
pub struct Letter {
    pub(super) number: usize,
    pub(super) properties: BasicProperties,
    pub(super) body: Bytes,
    pub(super) topology: Topology,
}

impl Letter {
    /// Returns its place in the queue, from 1, as it was found.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Returns its id, if its producer gave it one.
    #[must_use]
    pub fn message_id(&self) -> Option<&str> {
        self.properties.message_id().as_ref().map(|id| id.as_str())
    }

    /// Returns why it is one; `delivery_limit` where no consumer ever settled it, `unknown` if nobody says.
    #[must_use]
    pub fn reason(&self) -> &str {
        let said = header(&self.properties, headers::DEAD_REASON);
        said.or_else(|| last_death(&self.properties))
            .unwrap_or("unknown")
    }

    /// Returns what its last attempt said; empty if nothing.
    #[must_use]
    pub fn detail(&self) -> &str {
        header(&self.properties, headers::DEAD_DETAIL).unwrap_or_default()
    }

    /// Returns when it became one, as RFC 3339 writes it; empty if nobody says.
    #[must_use]
    pub fn at(&self) -> &str {
        header(&self.properties, headers::DEAD_AT).unwrap_or_default()
    }

    /// Returns how many attempts were made.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        attempts_made(&self.properties, u32::MAX)
    }

    /// Returns who answers for it, as it says or else as the topology does; empty if nobody is named.
    #[must_use]
    pub fn owner(&self) -> &str {
        let said = header(&self.properties, headers::OWNER);
        said.unwrap_or(self.topology.owner())
    }

    /// Returns what to do about it, as it says or else as the topology does; empty if nothing is said.
    #[must_use]
    pub fn runbook(&self) -> &str {
        let said = header(&self.properties, headers::RUNBOOK);
        said.unwrap_or(self.topology.runbook())
    }

    /// Returns what it says.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// Returns what is said about it.
    #[must_use]
    pub const fn properties(&self) -> &BasicProperties {
        &self.properties
    }

    /// Returns its headers by name, each in one line; bytes that are no UTF-8 are replaced.
    #[must_use]
    pub fn headers(&self) -> Vec<(String, String)> {
        let all = self
            .properties
            .headers()
            .iter()
            .flat_map(|headers| headers.inner());
        all.map(|(name, value)| (name.to_string(), line(value)))
            .collect()
    }
}

/// Why the broker moved it last: the newest of what it says comes first.
fn last_death(properties: &BasicProperties) -> Option<&str> {
    let AMQPValue::FieldArray(deaths) = properties.headers().as_ref()?.inner().get("x-death")?
    else {
        return None;
    };
    let AMQPValue::FieldTable(newest) = deaths.as_slice().first()? else {
        return None;
    };
    text(newest.inner().get("reason")?)
}

fn line(value: &AMQPValue) -> String {
    match value {
        AMQPValue::LongString(text) => text.to_string(),
        AMQPValue::ShortString(text) => text.to_string(),
        AMQPValue::Boolean(value) => value.to_string(),
        AMQPValue::ShortShortInt(number) => number.to_string(),
        AMQPValue::ShortInt(number) => number.to_string(),
        AMQPValue::LongInt(number) => number.to_string(),
        AMQPValue::LongUInt(number) => number.to_string(),
        AMQPValue::LongLongInt(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}
