//! Tasks that end together.

use futures_util::FutureExt as _;
use futures_util::future::Shared;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::backend::BoxFuture;

/// Tasks of which all end when one dies for good. Dropped, they are told to stop, and are not waited for.
pub(crate) struct Together<E: Clone> {
    stop: watch::Sender<bool>,
    all: Shared<BoxFuture<'static, Result<(), E>>>,
}

impl<E: Clone + Send + Sync + 'static> Together<E> {
    /// Starts them, on this runtime. `lost` is what a task dies of that can't say it itself.
    pub(crate) fn run<F>(
        stop: watch::Sender<bool>,
        tasks: impl IntoIterator<Item = F>,
        lost: fn(&JoinError) -> E,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let tasks = tasks.into_iter().collect();
        let watched = tokio::spawn(until_all_end(tasks, stop.clone(), lost));
        let all: BoxFuture<'static, _> =
            Box::pin(async move { watched.await.unwrap_or_else(|error| Err(lost(&error))) });
        Self {
            stop,
            all: all.shared(),
        }
    }

    /// Tells them to stop, and waits until all have.
    pub(crate) async fn stop(self) -> Result<(), E> {
        self.stop.send_replace(true);
        self.ended().await
    }

    /// Waits until all have ended; the first that died for good counts.
    pub(crate) async fn ended(&self) -> Result<(), E> {
        self.all.clone().await
    }
}

async fn until_all_end<E: Send + 'static>(
    mut tasks: JoinSet<Result<(), E>>,
    stop: watch::Sender<bool>,
    lost: fn(&JoinError) -> E,
) -> Result<(), E> {
    let mut ended = Ok(());
    while let Some(one) = tasks.join_next().await {
        let one = one.unwrap_or_else(|error| Err(lost(&error)));
        if one.is_err() {
            // The others end in good order, and the first reason counts.
            stop.send_replace(true);
            ended = ended.and(one);
        }
    }
    ended
}

impl<E: Clone> Drop for Together<E> {
    fn drop(&mut self) {
        // What waits for the tasks could tell them to stop, too: that it is gone would not be noticed.
        self.stop.send_replace(true);
    }
}
