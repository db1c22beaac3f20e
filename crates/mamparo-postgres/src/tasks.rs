//! Tasks that run as long as the backend does.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};

/// The wait before a task that died is started again.
const WAIT: Duration = Duration::from_millis(500);

/// Tasks that end with their owner, and are started again if they die before.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<Vec<JoinHandle<()>>>);

impl Tasks {
    /// Runs a task until it returns. One that panics is started again, so that nobody waits for it for ever.
    pub(crate) fn run<F>(&self, task: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let watched = tokio::spawn(async move {
            loop {
                // Ends with whoever watches it.
                let mut alone = JoinSet::new();
                alone.spawn(task());
                match alone.join_next().await {
                    Some(Err(_)) => tokio::time::sleep(WAIT).await,
                    Some(Ok(())) | None => return,
                }
            }
        });
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(watched);
    }

    /// Ends them.
    pub(crate) fn stop(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
            .for_each(|task| task.abort());
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.stop();
    }
}
