//! The name of a remote thing that has its own policy and state.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::{LazyLock, Mutex, PoisonError};

/// As many distinct names as are ever kept; a name beyond them is [`Dependency::OTHER`].
pub const MAX_NAMES: usize = 16_384;

/// As many bytes of a name as are kept.
pub const MAX_NAME_LEN: usize = 128;

static NAMES: LazyLock<Mutex<HashMap<&'static str, Dependency>>> = LazyLock::new(Mutex::default);

/// A dependency's name, such as `catalog` or `psp`.
///
/// Names are interned, at most [`MAX_NAMES`] of them, so that a name travels with every call without a copy
/// or a shared counter. Make it once, when the layer is built: interning takes a lock.
///
/// ```
/// use mamparo_core::Dependency;
///
/// let catalog = Dependency::named("catalog");
/// assert_eq!(catalog, Dependency::from("catalog"));
/// assert_ne!(catalog, Dependency::named("psp"));
/// assert_eq!(catalog.as_str(), "catalog");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dependency(
    /// A thin pointer, because it travels with every call; one address a name.
    &'static &'static str,
);

static NO_NAME: &str = "";
static OTHER_NAME: &str = "(other)";

impl Dependency {
    /// A dependency that was given no name.
    pub const UNNAMED: Self = Self(&NO_NAME);

    /// Stands for every name past the first [`MAX_NAMES`].
    pub const OTHER: Self = Self(&OTHER_NAME);

    /// Returns the dependency of that name; of a long name only the first [`MAX_NAME_LEN`] bytes count.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let name = &name[..name.floor_char_boundary(MAX_NAME_LEN)];
        if name.is_empty() {
            return Self::UNNAMED;
        }
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            return *known;
        }
        if names.len() >= MAX_NAMES {
            return Self::OTHER;
        }
        let name: &'static str = Box::leak(name.into());
        let interned = Self(Box::leak(Box::new(name)));
        names.insert(name, interned);
        interned
    }

    /// Returns the name, empty for [`Dependency::UNNAMED`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Tells whether the two can be the same remote thing: equal, or one of them unnamed.
    #[must_use]
    #[inline]
    pub fn may_be(self, other: Self) -> bool {
        self.is_unnamed() || other.is_unnamed() || std::ptr::eq(self.0, other.0)
    }

    /// Tells whether it was given no name.
    #[must_use]
    #[inline]
    pub fn is_unnamed(self) -> bool {
        std::ptr::eq(self.0, &raw const NO_NAME)
    }
}

impl Default for Dependency {
    fn default() -> Self {
        Self::UNNAMED
    }
}

impl From<&str> for Dependency {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

impl Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() {
            "the dependency"
        } else {
            self.0
        })
    }
}

impl fmt::Debug for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dependency({:?})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let (a, b) = (Dependency::named("same"), Dependency::named("same"));
        assert!(std::ptr::eq(a.0, b.0));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let cut = Dependency::named(&"ñ".repeat(MAX_NAME_LEN));
        assert_eq!(cut.as_str(), "ñ".repeat(MAX_NAME_LEN / 2));
    }

    #[test]
    fn an_unnamed_dependency_may_be_any() {
        let a = Dependency::named("a");
        assert!(a.may_be(Dependency::UNNAMED) && Dependency::UNNAMED.may_be(a) && a.may_be(a));
        assert!(!a.may_be(Dependency::named("b")));
    }
}
