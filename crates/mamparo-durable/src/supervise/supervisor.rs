//! Starts workers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::running::Health;
use super::{Restarted, Supervised, Together, Watch, Worker, WorkerDied};
use crate::handler::Listener;

/// As often as a worker is started again that never runs for a minute.
const MAX_RESTARTS: u32 = 10;

/// Runs workers, and starts each again that dies; see the [module](super).
#[must_use = "it does nothing until `run` is called"]
pub struct Supervisor {
    workers: Vec<Arc<dyn Worker>>,
    max_restarts: u32,
    listener: Arc<dyn Listener>,
}

impl Supervisor {
    /// Makes one that has no workers yet.
    pub fn new() -> Self {
        Self {
            workers: Vec::new(),
            max_restarts: MAX_RESTARTS,
            listener: Arc::new(()),
        }
    }

    /// Adds a worker.
    pub fn worker(mut self, worker: impl Worker) -> Self {
        self.workers.push(Arc::new(worker));
        self
    }

    /// Sets who hears of alerts; nobody by default.
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = listener;
        self
    }

    /// Sets how often a worker is started again before all end; 10 by default. One that has run for a minute counts from 0 again.
    pub const fn max_restarts(mut self, restarts: u32) -> Self {
        self.max_restarts = restarts;
        self
    }

    /// Starts the workers, on this runtime.
    #[must_use = "dropped, the workers are told to stop and not waited for"]
    pub fn run(self) -> Supervised {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = Vec::with_capacity(self.workers.len());
        let mut flags = Vec::with_capacity(self.workers.len());
        for worker in &self.workers {
            let watch = Watch {
                name: worker.name().into(),
                works: Arc::new(AtomicBool::new(true)),
                listener: Arc::clone(&self.listener),
                stop: stopped.clone(),
            };
            flags.push((Arc::clone(&watch.name), Arc::clone(&watch.works)));
            let name = Arc::clone(&watch.name);
            let restarted = self.restarted(Arc::clone(worker), watch);
            tasks.push(async move {
                let ended = restarted.run().await;
                ended.map_err(|why| WorkerDied::new(name, why))
            });
        }
        Supervised {
            tasks: Together::run(stop, tasks, WorkerDied::lost),
            health: Health::of(flags),
        }
    }

    fn restarted(&self, worker: Arc<dyn Worker>, watch: Watch) -> Restarted {
        let works = Arc::clone(&watch.works);
        Restarted {
            name: Arc::clone(&watch.name),
            max_restarts: self.max_restarts,
            works: Box::new(move |working| works.store(working, Ordering::Relaxed)),
            listener: Arc::clone(&self.listener),
            stop: watch.stop.clone(),
            make: Box::new(move || {
                let (worker, watch) = (Arc::clone(&worker), watch.clone());
                Box::pin(async move { worker.run(watch).await })
            }),
        }
    }
}

impl Default for Supervisor {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.workers.iter().map(|worker| worker.name()).collect();
        f.debug_struct("Supervisor")
            .field("workers", &names)
            .finish_non_exhaustive()
    }
}
