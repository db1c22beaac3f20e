//! Tasks that run as long as the backend does.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mamparo_durable::handler::Listener;
use mamparo_durable::machine::{Alert, AlertKind};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// The wait before a task that died is started again.
const WAIT: Duration = Duration::from_millis(500);

/// The wait between two batches of a sweep: others write, too.
const BETWEEN: Duration = Duration::from_millis(10);

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
                    Some(Err(_)) => sleep(WAIT).await,
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

/// Sweeps for ever, and again at once where it found as many as it may take; what fails is told, and tried again.
pub(crate) async fn keep_sweeping<F, E>(
    every: Duration,
    most: usize,
    tell: Tell,
    sweep: impl Fn() -> F + Send,
) where
    F: Future<Output = Result<usize, E>> + Send,
    E: Display + Send,
{
    loop {
        match sweep().await {
            Ok(swept) => {
                tell.works();
                if swept >= most {
                    sleep(BETWEEN).await;
                    continue;
                }
            }
            Err(error) => tell.fails(&error),
        }
        // Others on the same table do the same.
        sleep(every.mul_f64(fastrand::f64().mul_add(0.5, 0.75))).await;
    }
}

/// Tells that a task fails: once, until it works again.
#[derive(Clone, Debug)]
pub(crate) struct Tell {
    name: &'static str,
    listener: Arc<dyn Listener>,
    fails: Arc<AtomicBool>,
}

impl Tell {
    pub(crate) fn new(name: &'static str, listener: &Arc<dyn Listener>) -> Self {
        Self {
            name,
            listener: Arc::clone(listener),
            fails: Arc::default(),
        }
    }

    pub(crate) fn works(&self) {
        self.fails.store(false, Ordering::Relaxed);
    }

    pub(crate) fn fails(&self, why: &dyn Display) {
        if !self.fails.swap(true, Ordering::Relaxed) {
            let alert = Alert::general(AlertKind::BackendFails, 1);
            let detail = format!("{}: {why}", self.name);
            self.listener.alert(&alert.with_detail(detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Listener for Heard {
        fn alert(&self, alert: &Alert) {
            let detail = alert.detail.as_ref().unwrap().as_str().to_owned();
            self.0.lock().unwrap().push(detail);
        }
    }

    #[tokio::test]
    async fn a_sweep_that_fails_is_told_once_until_it_works_again_and_goes_on() {
        let (heard, sweeps) = (Arc::new(Heard::default()), Arc::new(AtomicU32::new(0)));
        let listener: Arc<dyn Listener> = heard.clone();
        let tell = Tell::new("inbox", &listener);
        let counted = sweeps.clone();
        let sweeping = keep_sweeping(Duration::from_millis(10), 10, tell, move || {
            let sweep = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                match sweep {
                    0 | 1 | 3 => Err(format!("no {sweep}")),
                    _ => Ok(5),
                }
            }
        });
        let enough = async {
            while sweeps.load(Ordering::Relaxed) < 6 {
                sleep(BETWEEN).await;
            }
        };
        tokio::select! {
            () = sweeping => {}
            () = enough => {}
        }
        assert_eq!(*heard.0.lock().unwrap(), ["inbox: no 0", "inbox: no 3"]);
    }
}
