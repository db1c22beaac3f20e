//! Traces: what the processes wrote of an order, followed by its identity and by the links between messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use mamparo_core::BoxError;
use serde::Deserialize;

/// A span, as a process wrote it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Span {
    pub(super) service: String,
    pub(super) name: String,
    trace: String,
    links: Vec<String>,
    status: String,
    attributes: BTreeMap<String, String>,
}

impl Span {
    pub(super) fn is(&self, attribute: &str, value: &str) -> bool {
        self.attributes
            .get(attribute)
            .is_some_and(|found| found == value)
    }

    /// Whether it is of a message of this id or, ending with a slash, one that begins so.
    pub(super) fn is_of_message(&self, id: &str) -> bool {
        let found = self.attributes.get("messaging.message.id");
        found.is_some_and(|found| found.starts_with(id))
    }

    /// Whether it is an attempt to handle a message of this queue.
    pub(super) fn is_process_of(&self, queue: &str) -> bool {
        self.name.starts_with("process ") && self.name.ends_with(queue)
    }

    pub(super) fn is_error(&self) -> bool {
        self.status.starts_with("Error")
    }
}

/// The files of spans.
pub(super) struct Traces(pub(super) PathBuf);

impl Traces {
    /// All spans that are there now.
    pub(super) fn all(&self) -> Result<Vec<Span>, BoxError> {
        let mut spans = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                let text = fs::read_to_string(path)?;
                // The last line may be half there.
                spans.extend(
                    text.lines()
                        .filter_map(|line| serde_json::from_str(line).ok()),
                );
            }
        }
        Ok(spans)
    }

    /// All spans of an order: those of its messages, and those of the traces that these link.
    pub(super) fn of(&self, order: &str) -> Result<Vec<Span>, BoxError> {
        let (mut spans, message) = (self.all()?, format!("{order}/"));
        let messages = spans.iter().filter(|span| span.is_of_message(&message));
        let traces = messages.flat_map(|span| [&span.trace].into_iter().chain(&span.links));
        let traces: BTreeSet<String> = traces.cloned().collect();
        spans.retain(|span| traces.contains(&span.trace));
        Ok(spans)
    }

    /// The services that an order went through, by name.
    pub(super) fn services(&self, order: &str) -> Result<Vec<String>, BoxError> {
        let services: BTreeSet<String> = self
            .of(order)?
            .into_iter()
            .map(|span| span.service)
            .collect();
        Ok(services.into_iter().collect())
    }
}
