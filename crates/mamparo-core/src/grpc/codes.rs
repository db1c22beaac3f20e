//! A set of status codes.

use std::fmt;

use super::Code;

/// A set of status codes, such as those on which a method's request is sent again.
///
/// ```
/// use mamparo_core::grpc::{Code, Codes};
///
/// let codes: Codes = [Code::Unavailable, Code::Aborted].into_iter().collect();
/// assert!(codes.contains(Code::Aborted) && !codes.contains(Code::Internal));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Codes(u32);

impl Codes {
    /// No code.
    pub const NONE: Self = Self(0);

    /// `UNAVAILABLE`: what is sent again unless told otherwise.
    pub const UNAVAILABLE: Self = Self::NONE.with(Code::Unavailable);

    /// Adds a code.
    #[must_use]
    pub const fn with(self, code: Code) -> Self {
        Self(self.0 | 1 << code.number())
    }

    /// Tells whether the code is in the set.
    #[must_use]
    pub const fn contains(self, code: Code) -> bool {
        self.0 & (1 << code.number()) != 0
    }

    /// Tells whether no code is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the codes, by number.
    pub fn iter(self) -> impl Iterator<Item = Code> {
        Code::ALL
            .into_iter()
            .filter(move |code| self.contains(*code))
    }
}

impl FromIterator<Code> for Codes {
    fn from_iter<I: IntoIterator<Item = Code>>(codes: I) -> Self {
        codes.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
