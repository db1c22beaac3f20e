//! Does together what comes at the same time.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mamparo_durable::backend::{BackendError, Trouble};
use tokio::sync::oneshot;

/// As many requests of one kind are under way at once. What comes meanwhile goes with the next.
const FLIGHTS: usize = 8;

type Told = Result<(), BackendError>;
pub(crate) type Flight = Pin<Box<dyn Future<Output = Vec<Told>> + Send>>;
type Requests<T> = Box<dyn Fn(Vec<T>) -> Flight + Send + Sync>;

/// Entries that wait for a request; the first waits for nothing, so alone it is as quick as without.
pub(crate) struct Gather<T>(Arc<Inner<T>>);

struct Inner<T> {
    line: Mutex<Line<T>>,
    send: Requests<T>,
    /// As many entries as go into one request, and as many bytes.
    most: usize,
    room: usize,
}

struct Line<T> {
    waiting: VecDeque<Waiting<T>>,
    flights: usize,
}

struct Waiting<T> {
    entry: T,
    bytes: usize,
    tell: oneshot::Sender<Told>,
}

impl<T: Send + 'static> Gather<T> {
    /// Gathers at most so many entries, and bytes, for a function that has a result for each.
    pub(crate) fn new(
        most: usize,
        room: usize,
        send: impl Fn(Vec<T>) -> Flight + Send + Sync + 'static,
    ) -> Self {
        let line = Line {
            waiting: VecDeque::new(),
            flights: 0,
        };
        Self(Arc::new(Inner {
            line: Mutex::new(line),
            send: Box::new(send),
            most,
            room,
        }))
    }

    /// Does entries, each of so many bytes; returns the first error of theirs. Dropped, they are done all the same.
    pub(crate) async fn all(&self, entries: Vec<(T, usize)>) -> Told {
        let told = self.0.put(entries);
        let mut end = Ok(());
        for told in told {
            end = end.and(told.await.unwrap_or_else(|_| Err(unknown())));
        }
        end
    }
}

impl<T: Send + 'static> Inner<T> {
    fn put(self: &Arc<Self>, entries: Vec<(T, usize)>) -> Vec<oneshot::Receiver<Told>> {
        let mut all = Vec::with_capacity(entries.len());
        let mut line = self.line();
        for (entry, bytes) in entries {
            let (tell, told) = oneshot::channel();
            line.waiting.push_back(Waiting { entry, bytes, tell });
            all.push(told);
        }
        let more = all.len().div_ceil(self.most).min(FLIGHTS - line.flights);
        line.flights += more;
        drop(line);
        for _ in 0..more {
            tokio::spawn(Arc::clone(self).fly());
        }
        all
    }

    /// Sends what waits, until nothing does.
    async fn fly(self: Arc<Self>) {
        loop {
            let (entries, tell) = self.batch();
            if entries.is_empty() {
                return;
            }
            for (tell, told) in tell.into_iter().zip((self.send)(entries).await) {
                // Whoever is gone need not know.
                drop(tell.send(told));
            }
        }
    }

    /// Takes what goes together; with nothing the flight is over, and whoever comes next begins another.
    fn batch(&self) -> (Vec<T>, Vec<oneshot::Sender<Told>>) {
        let mut line = self.line();
        let (mut entries, mut tell, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some(next) = line.waiting.front() {
            bytes += next.bytes;
            // One that is too large even alone goes, and is refused there.
            let full = entries.len() == self.most || (bytes > self.room && !entries.is_empty());
            if full {
                break;
            }
            let next = line.waiting.pop_front();
            let (entry, it) = next.map(|next| (next.entry, next.tell)).unzip();
            entries.extend(entry);
            tell.extend(it);
        }
        if entries.is_empty() {
            line.flights -= 1;
        }
        (entries, tell)
    }

    fn line(&self) -> MutexGuard<'_, Line<T>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown() -> BackendError {
    let message = "whoever sent the request is gone: whether it was done is unknown";
    BackendError::new(Trouble::Unavailable, message)
}

impl<T> Debug for Gather<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;

    const BATCH: usize = 10;

    type Batches = Arc<Mutex<Vec<Vec<usize>>>>;

    fn odd(n: &usize) -> Told {
        let even = n.is_multiple_of(2);
        even.then_some(()).ok_or_else(unknown)
    }

    fn slow(room: usize) -> (Gather<usize>, Batches) {
        let batches = Batches::default();
        let seen = Arc::clone(&batches);
        let send = move |entries: Vec<usize>| -> Flight {
            seen.lock().unwrap().push(entries.clone());
            let pause = tokio::time::sleep(Duration::from_millis(10));
            Box::pin(pause.map(move |()| entries.iter().map(odd).collect()))
        };
        (Gather::new(BATCH, room, send), batches)
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_others_are_under_way_goes_together_and_each_is_told_its_own() {
        let (gather, batches) = slow(usize::MAX);
        let ends = join_all((0..108).map(|n| gather.all(vec![(n, 1)]))).await;
        assert!(
            ends.iter()
                .enumerate()
                .all(|(n, end)| end.is_ok() == n.is_multiple_of(2))
        );
        let batches = batches.lock().unwrap();
        assert!(batches.iter().all(|batch| batch.len() <= BATCH));
        assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 108);
        assert!(batches.len() <= 20, "{batches:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_is_larger_than_its_room_unless_one_entry_is() {
        let (gather, batches) = slow(10);
        let sizes = [6, 6, 4, 12, 1].map(|bytes| (bytes, bytes));
        assert!(gather.all(sizes.to_vec()).await.is_err());
        let batches = batches.lock().unwrap();
        assert_eq!(*batches, [vec![6], vec![6, 4], vec![12], vec![1]]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_dropped_leaves_nobody_behind() {
        let (gather, _) = slow(usize::MAX);
        for _ in 0..50 {
            drop(gather.all(vec![(0, 1); 30]));
            let dropped = gather.all(vec![(0, 1); 30]);
            drop(tokio::time::timeout(Duration::from_millis(1), dropped).await);
            gather.all(vec![(0, 1); 30]).await.unwrap();
        }
    }
}
