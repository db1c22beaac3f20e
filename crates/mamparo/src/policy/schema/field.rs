//! What one setting may be.

use std::time::Duration;

/// A setting of a table.
#[derive(Debug)]
pub(in crate::policy) struct Field {
    pub(in crate::policy) name: &'static str,
    pub(in crate::policy) kind: Kind,
    /// What it sets, in a sentence.
    pub(in crate::policy) says: &'static str,
    /// What holds where nobody wrote it, as it would be written.
    pub(in crate::policy) default: &'static str,
}

/// What may be written for a setting.
#[derive(Debug)]
pub(in crate::policy) enum Kind {
    /// `"250ms"`.
    Duration,
    /// A duration, or a word that says that there is no limit.
    Limit(&'static str),
    /// A whole number in bounds.
    Count(i64, i64),
    /// A number in bounds.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// A list of texts.
    Texts,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A list of some words.
    Words(&'static [&'static str]),
    /// A list of HTTP statuses.
    Statuses,
    /// A table.
    Table(&'static [Field]),
    /// A table, or one of some words.
    Switch(&'static [&'static str], &'static [Field]),
}

/// Reads a duration: a number and a unit, several of them one after the other.
pub(in crate::policy) fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text).ok()
}

impl Kind {
    /// What may be written, as a message says it.
    pub(in crate::policy) fn wants(&self) -> String {
        let words = |words: &[&str]| {
            let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
            quoted.join(" or ")
        };
        match self {
            Self::Duration => r#"a duration such as "250ms" or "2s""#.into(),
            Self::Limit(none) => format!(r#"a duration such as "250ms", or {none:?}"#),
            Self::Count(least, most) => format!("a whole number from {least} to {most}"),
            Self::Number(least, most) if *most == f64::MAX => {
                format!("a number of at least {least}")
            }
            Self::Number(least, most) => format!("a number from {least} to {most}"),
            Self::Flag => "true or false".into(),
            Self::Text => "a text in quotes".into(),
            Self::Texts => "a list of texts in quotes".into(),
            Self::Choice(choices) => words(choices),
            Self::Words(choices) => {
                let quoted: Vec<_> = choices.iter().map(|word| format!("{word:?}")).collect();
                format!("a list of some of {}", quoted.join(", "))
            }
            Self::Statuses => "a list of HTTP statuses such as [404, 409]".into(),
            Self::Table(_) => "a table".into(),
            Self::Switch(choices, _) => format!("a table, or {}", words(choices)),
        }
    }
}
