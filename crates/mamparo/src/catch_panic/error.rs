//! The error that a panic becomes.

use std::any::Any;
use std::error::Error;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// As many bytes of a panic's text as are kept.
const MAX_TEXT: usize = 1024;

/// A handler panicked, for the log: its text is not for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    text: String,
}

impl Panicked {
    fn of(payload: Box<dyn Any + Send>) -> Self {
        let text = match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(payload) => match payload.downcast_ref::<&'static str>() {
                Some(text) => (*text).to_owned(),
                None => "a panic without text".to_owned(),
            },
        };
        let end = text.floor_char_boundary(MAX_TEXT);
        Self {
            text: text[..end].to_owned(),
        }
    }
}

impl Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the handler panicked: {}", self.text)
    }
}

impl Error for Panicked {}

/// Calls the handler's code. What it had in its hands when it panicked is dropped, and not looked at.
#[inline]
pub(super) fn caught<R>(work: impl FnOnce() -> R) -> Result<R, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(Panicked::of)
}
