//! What everything is called: all names begin with one prefix.

use mamparo_core::InvalidSetting;
use mamparo_durable::backend::QueueName;

/// As long as a prefix may be: what follows it must fit into the 64 characters of a schedule group.
const LONGEST_PREFIX: usize = 40;

/// The names of tables, queues and the schedule group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    /// # Errors
    ///
    /// [`InvalidSetting`] when the prefix has characters that not every service takes, or is too long.
    pub(crate) fn new(prefix: &str) -> Result<Self, InvalidSetting> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if prefix.is_empty() || prefix.len() > LONGEST_PREFIX || !prefix.bytes().all(plain) {
            let reason = "must be 1 to 40 of a-z, A-Z, 0-9, - and _";
            return Err(InvalidSetting::new("prefix", format!("{prefix:?}"), reason));
        }
        Ok(Self {
            prefix: prefix.to_owned(),
        })
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The table of transactions, requests and history.
    pub(crate) fn transactions(&self) -> String {
        format!("{}-transactions", self.prefix)
    }

    /// The table of what committed steps want done.
    pub(crate) fn outbox(&self) -> String {
        format!("{}-outbox", self.prefix)
    }

    pub(crate) fn queue(&self, queue: QueueName) -> String {
        format!("{}-{}", self.prefix, queue.as_str())
    }

    pub(crate) fn dead_letters(&self, queue: QueueName) -> String {
        format!("{}-{}-dlq", self.prefix, queue.as_str())
    }

    /// The group of all schedules.
    pub(crate) fn schedule_group(&self) -> String {
        format!("{}-schedules", self.prefix)
    }

    /// The queue of the fires that the scheduler could not publish.
    pub(crate) fn undelivered(&self) -> String {
        format!("{}-schedules-dlq", self.prefix)
    }

    /// The role by which the scheduler publishes fires.
    pub(crate) fn scheduler_role(&self) -> String {
        format!("{}-scheduler", self.prefix)
    }

    /// The table of dead letters.
    pub(crate) fn letters(&self) -> String {
        format!("{}-dead-letters", self.prefix)
    }

    /// The role that engines have.
    pub(crate) fn engine_role(&self) -> String {
        format!("{}-engine", self.prefix)
    }
}
