//! What an answer means.

use http::StatusCode;
use mamparo_core::InvalidSetting;

use crate::machine::{Label, Outcome};

/// As many bytes are read of an answer to judge it.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// As many statuses, or values, may be listed.
pub const MAX_LISTED: usize = 100;

/// Says what an answer of HTTP means to a transaction.
///
/// The first of these that fits: the field of a JSON body has a value that is listed; the status is listed; 2xx is a success; 408, 425,
/// 429 and 5xx are technical failures, for nobody knows whether the dependency acted; anything else is declined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judge {
    refused: Vec<StatusCode>,
    declined: Vec<StatusCode>,
    field: Option<Box<str>>,
    refused_values: Vec<Box<str>>,
    declined_values: Vec<Box<str>>,
}

impl Judge {
    /// Starts from one that knows no refusals.
    pub fn builder() -> JudgeBuilder {
        JudgeBuilder::default()
    }

    /// Tells whether it looks into bodies.
    #[must_use]
    pub const fn reads_bodies(&self) -> bool {
        self.field.is_some()
    }

    /// Tells whether it knows any refusal.
    pub(crate) fn refuses(&self) -> bool {
        !self.refused.is_empty() || !self.refused_values.is_empty()
    }

    /// Judges an answer, and says why, if it is no success. Of a body that is longer than [`MAX_ANSWER_BYTES`] or no JSON only the
    /// status counts.
    #[must_use]
    pub fn judge(&self, status: StatusCode, body: &[u8]) -> (Outcome, Option<Label>) {
        let value = self.value(body);
        let listed = |values: &[Box<str>]| {
            value
                .as_deref()
                .is_some_and(|value| values.iter().any(|listed| **listed == *value))
        };
        let outcome = if listed(&self.refused_values) {
            Outcome::Refused
        } else if listed(&self.declined_values) {
            Outcome::Declined
        } else if self.refused.contains(&status) {
            Outcome::Refused
        } else if self.declined.contains(&status) {
            Outcome::Declined
        } else if status.is_success() {
            Outcome::Success
        } else if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
            Outcome::Technical
        } else {
            Outcome::Declined
        };
        let reason = match value {
            Some(value) => Label::from(value.as_str()),
            None => Label::from(format!("HTTP {}", status.as_u16()).as_str()),
        };
        (
            outcome,
            Some(reason).filter(|_| outcome != Outcome::Success),
        )
    }

    /// The field, where the body has it as a text; `a.b` is `b` of `a`.
    fn value(&self, body: &[u8]) -> Option<String> {
        let field = self.field.as_deref()?;
        if body.len() > MAX_ANSWER_BYTES {
            return None;
        }
        let json: serde_json::Value = serde_json::from_slice(body).ok()?;
        let mut at = &json;
        for name in field.split('.') {
            at = at.get(name)?;
        }
        at.as_str().map(ToOwned::to_owned)
    }
}

/// Settings of a [`Judge`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct JudgeBuilder {
    judge: Judge,
}

impl JudgeBuilder {
    /// Sets the statuses that mean "not now".
    pub fn refused(mut self, statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        self.judge.refused = statuses.into_iter().collect();
        self
    }

    /// Sets the statuses that mean "never", besides those that do anyway.
    pub fn declined(mut self, statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        self.judge.declined = statuses.into_iter().collect();
        self
    }

    /// Sets the field of a JSON answer that says how it went, whatever the status; `a.b` is `b` of `a`.
    pub fn field(mut self, path: impl Into<String>) -> Self {
        self.judge.field = Some(path.into().into());
        self
    }

    /// Sets the values of that field that mean "not now".
    pub fn refused_values<V: Into<String>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        self.judge.refused_values = boxed(values);
        self
    }

    /// Sets the values of that field that mean "never".
    pub fn declined_values<V: Into<String>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        self.judge.declined_values = boxed(values);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when too much is listed, the same twice, a success among the statuses, or values without a field.
    pub fn build(self) -> Result<Judge, InvalidSetting> {
        let Judge {
            refused,
            declined,
            field,
            refused_values,
            declined_values,
        } = &self.judge;
        for (setting, many) in [
            ("refused", refused.len()),
            ("declined", declined.len()),
            ("refused_values", refused_values.len()),
            ("declined_values", declined_values.len()),
        ] {
            if many > MAX_LISTED {
                return Err(InvalidSetting::new(setting, many, "must be at most 100"));
            }
        }
        if let Some(status) = refused.iter().chain(declined).find(|it| it.is_success()) {
            let reason = "must be no success: name a field that says how it went";
            return Err(InvalidSetting::new("refused", status, reason));
        }
        if let Some(both) = refused.iter().find(|status| declined.contains(status)) {
            return Err(InvalidSetting::new(
                "declined",
                both,
                "must not be refused too",
            ));
        }
        if let Some(both) = refused_values
            .iter()
            .find(|it| declined_values.contains(it))
        {
            let reason = "must not be in refused_values too";
            return Err(InvalidSetting::new("declined_values", both, reason));
        }
        let values = !refused_values.is_empty() || !declined_values.is_empty();
        if field.is_none() && values {
            let reason = "must be named, for its values are";
            return Err(InvalidSetting::new("field", "none", reason));
        }
        Ok(self.judge)
    }
}

fn boxed<V: Into<String>>(values: impl IntoIterator<Item = V>) -> Vec<Box<str>> {
    values
        .into_iter()
        .map(|value| value.into().into())
        .collect()
}
