//! The changes of a breaker's state, in order, for whoever wants to hear of them.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use mamparo_core::breaker::Transition;
use mamparo_core::{CallContext, Dependency, Event, Observer, What};

use crate::sync::{Mutex, MutexGuard};

/// As many changes as are kept for followers that are slow to read.
const KEPT: usize = 128;

/// As many followers as wait to be woken; more ask again and again.
const MAX_WAITING: usize = 1024;

/// A list that changes are added to under the breaker's lock, and read from outside of it.
pub(super) struct Journal {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    kept: VecDeque<Transition>,
    /// How many were ever added.
    added: u64,
    /// How many the observer has heard.
    told: u64,
    /// Whether a thread tells the observer: it goes on until nothing is left.
    telling: bool,
    /// Those who wait for what comes next, each by its number.
    waiting: Vec<(u64, Waker)>,
    followers: u64,
    observer: Option<Arc<dyn Observer>>,
    dependency: Dependency,
}

impl Journal {
    pub(super) fn new() -> Self {
        Self {
            entries: Mutex::new(Entries::default()),
        }
    }

    /// No code panics while it holds the lock; were it poisoned all the same, its entries would still be in order.
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_observer(&self, observer: Option<Arc<dyn Observer>>) {
        self.entries().observer = observer;
    }

    pub(super) fn set_dependency(&self, dependency: Dependency) {
        self.entries().dependency = dependency;
    }

    /// Adds a change; whoever does calls [`Journal::tell`] once it holds no lock any more.
    pub(super) fn add(&self, mut transition: Transition) {
        let mut entries = self.entries();
        transition.dependency = entries.dependency;
        if entries.kept.len() == KEPT {
            entries.kept.pop_front();
        }
        entries.kept.push_back(transition);
        entries.added += 1;
    }

    /// Wakes the followers and tells the observer, one change at a time and in order, with no lock held.
    ///
    /// Where another thread is telling, or this one already is, further out, that one goes on with what is new.
    pub(super) fn tell(&self) {
        let mut entries = self.entries();
        let waiting = std::mem::take(&mut entries.waiting);
        let mut telling = None;
        if !entries.telling && entries.observer.is_some() {
            entries.telling = true;
            telling = Some(Telling {
                journal: self,
                over: false,
            });
        }
        drop(entries);
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
        if let Some(mut telling) = telling {
            while telling.next() {}
        }
    }

    fn read(&self, follower: u64, cursor: &mut u64, cx: &mut Context<'_>) -> Poll<Transition> {
        let mut entries = self.entries();
        let oldest = entries.added - entries.kept.len() as u64;
        *cursor = (*cursor).max(oldest);
        if let Some(transition) = entries.at(*cursor) {
            *cursor += 1;
            return Poll::Ready(transition);
        }
        let waker = cx.waker();
        let others = entries.waiting.len();
        match entries.known(follower) {
            Some(known) if known.will_wake(waker) => {}
            Some(known) => {
                let old = std::mem::replace(known, waker.clone());
                // What a waker drops may want this lock.
                drop(entries);
                drop(old);
            }
            None if others < MAX_WAITING => entries.waiting.push((follower, waker.clone())),
            None => {
                drop(entries);
                waker.wake_by_ref();
            }
        }
        Poll::Pending
    }

    /// Returns a number for one more follower, and from where on it reads.
    fn follow(&self) -> (u64, u64) {
        let mut entries = self.entries();
        entries.followers += 1;
        (entries.followers, entries.added)
    }

    /// A follower has gone away.
    fn leave(&self, follower: u64) {
        let mut entries = self.entries();
        let at = (entries.waiting.iter()).position(|(number, _)| *number == follower);
        let left = at.map(|at| entries.waiting.swap_remove(at));
        drop(entries);
        drop(left);
    }

    fn added(&self) -> u64 {
        self.entries().added
    }
}

impl Entries {
    fn at(&self, number: u64) -> Option<Transition> {
        let oldest = self.added - self.kept.len() as u64;
        let index = usize::try_from(number.checked_sub(oldest)?).ok()?;
        self.kept.get(index).cloned()
    }

    fn known(&mut self, follower: u64) -> Option<&mut Waker> {
        let mut waiting = self.waiting.iter_mut();
        waiting.find_map(|(number, waker)| (*number == follower).then_some(waker))
    }
}

/// The thread that tells the observer, until it stops, by a panic of the observer's too.
struct Telling<'a> {
    journal: &'a Journal,
    over: bool,
}

impl Telling<'_> {
    /// Tells the next change, if there is one.
    fn next(&mut self) -> bool {
        let mut entries = self.journal.entries();
        let oldest = entries.added - entries.kept.len() as u64;
        entries.told = entries.told.max(oldest);
        let Some(transition) = entries.at(entries.told) else {
            // Under the lock, so that whatever is added after this is told by whoever adds it.
            entries.telling = false;
            self.over = true;
            return false;
        };
        entries.told += 1;
        let observer = entries.observer.clone();
        drop(entries);
        let what = What::BreakerTransition(&transition);
        Event::report(observer.as_ref(), &CallContext::current(), what);
        true
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.journal.entries().telling = false;
        }
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("added", &self.added())
            .finish_non_exhaustive()
    }
}

/// Reads a breaker's changes of state in their order; see [`BreakerHandle::transitions`](super::BreakerHandle::transitions).
pub struct Transitions {
    pub(super) journal: Arc<Journal>,
    number: u64,
    next: u64,
}

impl Transitions {
    pub(super) fn new(journal: Arc<Journal>) -> Self {
        let (number, next) = journal.follow();
        Self {
            journal,
            number,
            next,
        }
    }

    /// Returns the next change, as soon as there is one.
    ///
    /// Safe to cancel. Who reads so slowly that 128 newer ones wait misses the oldest; [`Transition::from`] shows it.
    pub async fn next(&mut self) -> Transition {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next change.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Transition> {
        self.journal.read(self.number, &mut self.next, cx)
    }
}

impl Drop for Transitions {
    fn drop(&mut self) {
        self.journal.leave(self.number);
    }
}

impl fmt::Debug for Transitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transitions")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
