//! What a caller must know of the keys, in words.

use std::fmt;

use super::config::{IdempotencyBuilder, Principal, Stored};
use super::key::KeySyntax;
use super::{IdempotencyPolicy, OnExpiry};

/// What a caller must know, in words; see [`IdempotencyPolicy::describe`].
#[derive(Clone, Copy, Debug)]
pub struct Description<'a>(&'a IdempotencyBuilder);

impl IdempotencyPolicy {
    /// Says what a caller must know, in plain English: a server must publish it (draft-07 §2.3).
    ///
    /// ```
    /// use mamparo::idempotency::IdempotencyPolicy;
    ///
    /// let policy = IdempotencyPolicy::for_all_callers().required().build()?;
    /// let words = policy.describe().to_string();
    /// assert!(words.contains("POST and PATCH requests need the header idempotency-key"));
    /// assert!(words.contains("kept for 1day"));
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    #[must_use]
    pub const fn describe(&self) -> Description<'_> {
        Description(&self.settings)
    }
}

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.0;
        let methods: Vec<&str> = settings.methods.iter().map(http::Method::as_str).collect();
        let needs = if settings.required {
            "need"
        } else {
            "may have"
        };
        let methods = methods.join(" and ");
        writeln!(
            f,
            "{methods} requests {needs} the header {}.",
            settings.header
        )?;
        writeln!(f, "{}", self.form())?;
        let whose = match settings.principal {
            Principal::Of(_) => "Each account has its own keys.",
            Principal::Anyone => "All callers share one set of keys.",
        };
        writeln!(f, "{whose}")?;
        let retention = humantime::format_duration(settings.retention);
        let stored = match settings.stored {
            Stored::All => "The answer, an error too,",
            Stored::NotServerErrors => "The answer, unless it is a server's error,",
            Stored::Successes => "The answer, unless it is an error,",
        };
        writeln!(
            f,
            "{stored} is kept for {retention} and given again with idempotent-replayed: true; after that the key is as good as new."
        )?;
        writeln!(
            f,
            "The same key with another request is refused with 422, and with 409 while the first is being processed: ask again later."
        )?;
        let unknown = settings.indeterminate_status.as_u16();
        match settings.on_expiry {
            OnExpiry::RunAgain => write!(
                f,
                "A request that broke off in the middle is processed again."
            ),
            OnExpiry::Indeterminate => write!(
                f,
                "A request that broke off in the middle is not processed again, and answered with {unknown}: its outcome is unknown."
            ),
        }
    }
}

impl Description<'_> {
    fn form(&self) -> String {
        let longest = self.0.longest_key;
        let form = match self.0.syntax {
            KeySyntax::Strict => "in double quotes",
            KeySyntax::Lenient => "in double quotes or without",
        };
        format!(
            "A key has 1 to {longest} visible ASCII characters, {form}; make a new one for each operation."
        )
    }
}
