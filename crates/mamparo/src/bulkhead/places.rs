//! The places that calls run in, and the line of those who wait for one.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::task::{Context, Waker};

use super::partition::{Ledger, Partitions, Seat};
use super::state::{ONE_IN_FLIGHT, ONE_QUEUED, Occupancy};
use crate::sync::Ordering::{AcqRel, Acquire, Release};
use crate::sync::{AtomicU64, Mutex, MutexGuard};

/// The places of one bulkhead.
///
/// While one is free and nobody waits, it is taken and given back in one word; the lock is for the line alone. A
/// place that comes free while somebody waits is handed to who came first, and newcomers line up behind: nobody
/// overtakes.
///
/// On cache lines of their own: every call writes to the word, so that nothing else may be read there.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Places {
    word: AtomicU64,
    /// How long the line may be; only who finds no place reads it.
    max_waiting: AtomicU64,
    partitions: Option<Partitions>,
    line: Mutex<Line>,
}

/// Those who wait, first come first; the same number of them as in the word.
#[derive(Debug)]
struct Line {
    waiting: VecDeque<Waiting>,
    next: u64,
    shares: Option<Shares>,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    seat: Seat,
    /// Once it was polled.
    waker: Option<Waker>,
}

/// What each tenant uses.
#[derive(Debug)]
struct Shares {
    running: Ledger,
    waiting: Ledger,
}

/// What became of a call that wants in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// It has a place.
    Entered,
    /// It waits, with this ticket.
    Queued(u64),
    /// There is none, nor one in the queue.
    Full,
}

impl Places {
    pub(super) fn new(limit: usize, max_waiting: usize, partitions: Option<Partitions>) -> Self {
        let shares = partitions.as_ref().map(|partitions| Shares {
            running: Ledger::new(partitions),
            waiting: Ledger::new(partitions),
        });
        Self {
            word: AtomicU64::new(Occupancy::empty(limit, partitions.is_some()).0),
            max_waiting: AtomicU64::new(max_waiting as u64),
            partitions,
            line: Mutex::new(Line {
                waiting: VecDeque::new(),
                next: 0,
                shares,
            }),
        }
    }

    #[inline]
    pub(super) fn occupancy(&self) -> Occupancy {
        Occupancy(self.word.load(Acquire))
    }

    pub(super) const fn partitions(&self) -> Option<&Partitions> {
        self.partitions.as_ref()
    }

    pub(super) fn running_for(&self, seat: Seat) -> usize {
        let line = self.line();
        let shares = line.shares.as_ref();
        shares.map_or(0, |shares| shares.running.used_by(seat))
    }

    /// Takes a place, or one in the queue.
    #[inline]
    pub(super) fn enter(&self, seat: Seat) -> Entry {
        if self.change(Occupancy::entered) {
            return Entry::Entered;
        }
        let most_waiting = self.max_waiting.load(Acquire) as usize;
        self.enter_line(seat, most_waiting)
    }

    /// As [`enter`](Self::enter), for services that wait instead of calls: each brings its place in the queue along.
    pub(super) fn enter_unbounded(&self) -> Entry {
        if self.change(Occupancy::entered) {
            return Entry::Entered;
        }
        self.enter_line(Seat::default(), usize::MAX)
    }

    #[cold]
    fn enter_line(&self, seat: Seat, most_waiting: usize) -> Entry {
        let full = |now: Occupancy| !now.has_room() && now.queued() >= most_waiting;
        if full(self.occupancy()) {
            return Entry::Full; // a storm of rejections takes no lock
        }
        let mut guard = self.line();
        let line = &mut *guard;
        if let (Some(partitions), Some(shares)) = (&self.partitions, &mut line.shares) {
            let limit = self.occupancy().limit();
            let fits = |seat| shares.running.fits(partitions, limit, seat);
            // Who waits and fits is about to be served, by whoever has left or changed the limit: this comes after it.
            if fits(seat) && !line.waiting.iter().any(|waiting| fits(waiting.seat)) {
                shares.running.enter(seat);
                self.word.fetch_add(ONE_IN_FLIGHT, AcqRel);
                return Entry::Entered;
            }
            if !shares.waiting.fits(partitions, most_waiting, seat) {
                return Entry::Full;
            }
            shares.waiting.enter(seat);
        }
        // Whoever leaves before this finds nobody waiting, and this finds the place; whoever leaves after it serves us.
        let lined_up = |now: Occupancy| now.entered().or_else(|| now.lined_up(most_waiting));
        let Some(before) = self.change_by(lined_up) else {
            return Entry::Full;
        };
        if before.entered().is_some() {
            return Entry::Entered;
        }
        let ticket = line.next;
        line.next += 1;
        line.waiting.push_back(Waiting {
            ticket,
            seat,
            waker: None,
        });
        Entry::Queued(ticket)
    }

    /// Gives a place back; whoever waits for it gets it.
    #[inline]
    pub(super) fn leave(&self, seat: Seat) {
        let before = Occupancy(self.word.fetch_sub(ONE_IN_FLIGHT, AcqRel));
        if !before.is_open() {
            self.leave_line(seat);
        }
    }

    #[cold]
    fn leave_line(&self, seat: Seat) {
        if let Some(shares) = &mut self.line().shares {
            shares.running.leave(seat);
        }
        self.serve();
    }

    /// Tells whether the ticket's holder has been handed a place; it is woken when it has.
    pub(super) fn poll(&self, ticket: u64, cx: &Context<'_>) -> bool {
        let mut line = self.line();
        let Some(at) = line.find(ticket) else {
            return true;
        };
        let waker = &mut line.waiting[at].waker;
        if waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            return false;
        }
        let old = waker.replace(cx.waker().clone());
        // What a waker drops may want this lock.
        drop(line);
        drop(old);
        false
    }

    /// Leaves the queue, or gives back the place that the ticket's holder was handed meanwhile.
    pub(super) fn abandon(&self, ticket: u64, seat: Seat) {
        let mut line = self.line();
        let Some(at) = line.find(ticket) else {
            drop(line);
            return self.leave(seat);
        };
        let left = line.waiting.remove(at);
        if let Some(shares) = &mut line.shares {
            shares.waiting.leave(seat);
        }
        self.word.fetch_sub(ONE_QUEUED, AcqRel);
        drop(line);
        drop(left);
    }

    /// Changes the limit. Nobody is thrown out by a smaller one; [`serve`](Self::serve) lets in who fits a larger one.
    pub(super) fn set_limit(&self, limit: usize) {
        // Under the lock, so that who lines up decides by one limit.
        let _line = self.line();
        self.change(|now| Some(now.with_limit(limit)));
    }

    /// Changes how long the line may be. Nobody is thrown out by a shorter one.
    pub(super) fn set_max_waiting(&self, max_waiting: usize) {
        self.max_waiting.store(max_waiting as u64, Release);
    }

    /// Hands free places to those who wait for them, in their order.
    pub(super) fn serve(&self) {
        while let Some(served) = self.serve_one() {
            // Outside of the lock: a waker runs whatever it likes.
            if let Some(waker) = served.waker {
                waker.wake();
            }
        }
    }

    fn serve_one(&self) -> Option<Waiting> {
        let mut line = self.line();
        let limit = self.occupancy().limit();
        let at = line.first_that_fits(self.partitions.as_ref(), limit)?;
        self.change_by(Occupancy::handed_over)?;
        let served = line.waiting.remove(at)?;
        if let Some(shares) = &mut line.shares {
            shares.waiting.leave(served.seat);
            shares.running.enter(served.seat);
        }
        Some(served)
    }

    #[inline]
    fn change(&self, change: impl Fn(Occupancy) -> Option<Occupancy>) -> bool {
        self.change_by(change).is_some()
    }

    /// Changes the word, and returns it as it was, unless there is no such change.
    #[inline]
    fn change_by(&self, change: impl Fn(Occupancy) -> Option<Occupancy>) -> Option<Occupancy> {
        let mut now = self.occupancy();
        loop {
            let next = change(now)?;
            match self
                .word
                .compare_exchange_weak(now.0, next.0, AcqRel, Acquire)
            {
                Ok(_) => return Some(now),
                Err(seen) => now = Occupancy(seen),
            }
        }
    }

    /// Nothing panics while the lock is held but what a waker's clone may; the line is whole then too.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Tickets are dealt out in order, and the line keeps it.
    fn find(&self, ticket: u64) -> Option<usize> {
        let found = self
            .waiting
            .binary_search_by_key(&ticket, |waiting| waiting.ticket);
        found.ok()
    }

    /// The first who may have a place; with shares, one further back may where the first may not.
    fn first_that_fits(&self, partitions: Option<&Partitions>, limit: usize) -> Option<usize> {
        let (Some(partitions), Some(shares)) = (partitions, &self.shares) else {
            return (!self.waiting.is_empty()).then_some(0);
        };
        let fits = |waiting: &Waiting| shares.running.fits(partitions, limit, waiting.seat);
        self.waiting.iter().position(fits)
    }
}
