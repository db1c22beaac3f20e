//! Who waits for the next frame of a body that several attempts read side by side.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The wakers of all readers that wait: the source knows one waker only, and that one wakes them all.
///
/// Behind a lock of its own, because a source may wake while it is polled.
#[derive(Default)]
pub(super) struct Crowd(Mutex<Vec<(u32, Waker)>>);

impl Crowd {
    /// Notes that a reader waits; called before the source is polled, so that no wake is lost in between.
    pub(super) fn join(&self, reader: u32, waker: &Waker) {
        let mut waiting = self.lock();
        match waiting.iter_mut().find(|(number, _)| *number == reader) {
            Some((_, known)) => known.clone_from(waker),
            None => waiting.push((reader, waker.clone())),
        }
    }

    pub(super) fn leave(&self, reader: u32) {
        self.lock().retain(|(number, _)| *number != reader);
    }

    pub(super) fn wake_all(&self) {
        let waiting = mem::take(&mut *self.lock());
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u32, Waker)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Crowd {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}
