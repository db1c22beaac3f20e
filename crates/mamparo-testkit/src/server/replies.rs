//! Which reply is for which request.

use super::reply::Reply;
use crate::sync::lock;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

/// The replies of a server, in order or by path; the last one of a list is repeated.
///
/// ```
/// use mamparo_testkit::server::{Replies, Reply};
/// let replies = Replies::from([Reply::status(503), Reply::ok()])
///     .on("/slow", [Reply::hang()])
///     .on("/broken", [Reply::reset()]);
/// # drop(replies);
/// ```
#[derive(Debug, Default)]
pub struct Replies {
    paths: HashMap<String, List>,
    others: List,
}

impl Replies {
    /// Makes replies without a list: every request gets 404.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives one path its own list.
    #[must_use]
    pub fn on(mut self, path: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.paths.insert(path.to_owned(), List::new(replies));
        self
    }

    pub(super) fn next(&self, path: &str) -> Reply {
        let list = self.paths.get(path).unwrap_or(&self.others);
        list.next().unwrap_or_else(|| Reply::status(404))
    }
}

impl<const N: usize> From<[Reply; N]> for Replies {
    fn from(replies: [Reply; N]) -> Self {
        Self::from(Vec::from(replies))
    }
}

impl From<Vec<Reply>> for Replies {
    fn from(replies: Vec<Reply>) -> Self {
        Self {
            paths: HashMap::new(),
            others: List::new(replies),
        }
    }
}

impl From<Reply> for Replies {
    fn from(reply: Reply) -> Self {
        Self::from([reply])
    }
}

#[derive(Debug, Default)]
struct List(Mutex<VecDeque<Reply>>);

impl List {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self(Mutex::new(replies.into_iter().collect()))
    }

    fn next(&self) -> Option<Reply> {
        let mut list = lock(&self.0);
        if list.len() > 1 {
            list.pop_front()
        } else {
            list.front().cloned()
        }
    }
}
