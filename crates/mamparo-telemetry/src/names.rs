//! Names that come with requests, kept for as long as the program runs.
//!
//! They are few: the methods and routes of a program. Whoever could make up more finds the table full.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

/// As many names as are kept; others are told apart from these, but not from each other.
pub const MAX_NAMES: usize = 1024;

/// How long a name may be.
pub(crate) const MAX_NAME_LEN: usize = 256;

static NAMES: LazyLock<Names> = LazyLock::new(Names::default);

thread_local! {
    /// What this thread has found already: the table is locked for a new name only.
    static FOUND: RefCell<HashMap<&'static str, &'static Name>> = RefCell::default();
}

/// A name that is kept.
#[derive(Debug)]
pub(crate) struct Name {
    text: Box<str>,
    attempt: OnceLock<Box<str>>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Names(RwLock<HashMap<&'static str, &'static Name>>);

impl Name {
    pub(crate) const fn as_str(&self) -> &str {
        &self.text
    }

    /// The name of the spans of a method's attempts (gRFC A72).
    pub(crate) fn of_attempt(&self) -> &str {
        let name = || format!("Attempt.{}", self.text.replace('/', ".")).into();
        self.attempt.get_or_init(name)
    }

    /// Finds a name that is kept.
    pub(crate) fn find(text: &str) -> Option<&'static Self> {
        Self::look_up(text, || NAMES.find(text))
    }

    /// Keeps a name; none if it is too long, or if there are too many.
    pub(crate) fn keep(text: &str) -> Option<&'static Self> {
        Self::look_up(text, || NAMES.keep(text))
    }

    fn look_up(
        text: &str,
        further: impl FnOnce() -> Option<&'static Self>,
    ) -> Option<&'static Self> {
        let known = FOUND.try_with(|found| found.borrow().get(text).copied());
        if let Ok(Some(name)) = known {
            return Some(name);
        }
        let name = further()?;
        // At the thread's end there is no place for it any more.
        let _gone = FOUND.try_with(|found| found.borrow_mut().insert(name.as_str(), name));
        Some(name)
    }
}

impl Names {
    fn find(&self, text: &str) -> Option<&'static Name> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        names.get(text).copied()
    }

    pub(crate) fn keep(&self, text: &str) -> Option<&'static Name> {
        if let Some(name) = self.find(text) {
            return Some(name);
        }
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = names.get(text) {
            return Some(name);
        }
        if text.len() > MAX_NAME_LEN || names.len() >= MAX_NAMES {
            return None;
        }
        let name: &'static Name = Box::leak(Box::new(Name {
            text: text.into(),
            attempt: OnceLock::new(),
        }));
        names.insert(name.as_str(), name);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law 10: names that strangers make up fill a table and no more.
    #[test]
    fn there_are_so_many_names_and_no_more() {
        let names = Names::default();
        for number in 0..MAX_NAMES {
            assert!(names.keep(&number.to_string()).is_some());
        }
        assert!(names.keep("one more").is_none());
        assert_eq!(names.keep("7").unwrap().as_str(), "7", "which is there");
        let empty = Names::default();
        assert!(empty.keep(&"n".repeat(MAX_NAME_LEN + 1)).is_none());
    }

    #[test]
    fn a_name_is_found_once_it_is_kept() {
        let text = "names.Test/Found";
        assert!(Name::find(text).is_none());
        let kept = Name::keep(text).unwrap();
        assert!(std::ptr::eq(kept, Name::find(text).unwrap()));
        let elsewhere = std::thread::spawn(move || Name::find(text)).join();
        assert!(std::ptr::eq(kept, elsewhere.unwrap().unwrap()));
    }
}
