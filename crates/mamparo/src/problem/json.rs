//! How a problem is written (RFC 9457 §3, RFC 8259).

use std::fmt::{self, Display, Write};

/// The value of a member of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Member {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
    /// A list of texts.
    Texts(Vec<String>),
}

impl From<&str> for Member {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Member {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Member {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<Vec<String>> for Member {
    fn from(texts: Vec<String>) -> Self {
        Self::Texts(texts)
    }
}

/// A text as JSON has it, in quotes.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                // What would end a line of JavaScript, too.
                '\u{0}'..='\u{1f}' | '\u{7f}' | '\u{2028}' | '\u{2029}' => {
                    write!(f, "\\u{:04x}", u32::from(c))?;
                }
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

impl Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => Quoted(text).fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Texts(texts) => {
                f.write_char('[')?;
                for (at, text) in texts.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{}", Quoted(text))?;
                }
                f.write_char(']')
            }
        }
    }
}
