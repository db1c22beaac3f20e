//! A few counts for each thread, apart from those of the others.

use crate::sync::AtomicU64;
use crate::sync::shard::{Each, Line};

/// Counts for each shard, on cache lines of its own; or one set for all of them, where memory counts for more.
#[derive(Debug)]
pub(super) enum Shards<const COUNTS: usize> {
    Each(Each<Box<Line<Counts<COUNTS>>>>),
    One(Box<Counts<COUNTS>>),
}

type Counts<const COUNTS: usize> = [AtomicU64; COUNTS];

impl<const COUNTS: usize> Shards<COUNTS> {
    /// Makes counts, `spread` over all shards.
    pub(super) fn new(spread: bool) -> Self {
        match spread {
            true => Self::Each(Each::new()),
            false => Self::One(Box::new(zeros())),
        }
    }

    /// Returns the running thread's counts.
    #[inline]
    pub(super) fn own(&self) -> &Counts<COUNTS> {
        match self {
            Self::Each(each) => &each.own(|| Box::new(Line(zeros()))).0,
            Self::One(one) => one,
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Counts<COUNTS>> {
        let (each, one) = match self {
            Self::Each(each) => (Some(each.made()), None),
            Self::One(one) => (None, Some(&**one)),
        };
        let each = each.into_iter().flatten();
        each.map(|line| &line.0).chain(one)
    }

    /// Returns how many bytes it takes beside itself.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Each(each) => each.made().map(|line| size_of_val(&**line)).sum(),
            Self::One(one) => size_of_val(&**one),
        }
    }
}

#[cold]
fn zeros<const COUNTS: usize>() -> Counts<COUNTS> {
    std::array::from_fn(|_| AtomicU64::new(0))
}
