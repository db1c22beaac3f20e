//! What is run, and what it can ask and say meanwhile.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::{is_stopped, stopped, until_stop};
use crate::backend::{BackendError, BoxFuture};
use crate::handler::Listener;
use crate::machine::{Alert, AlertKind};

/// A loop that goes on until it is told to stop.
pub trait Worker: Send + Sync + 'static {
    /// Returns the name that alerts and logs have: lower case, stable.
    fn name(&self) -> &str;

    /// Works until [`Watch::is_stopped`], and returns then. It is called again after it has failed, panicked or returned before.
    fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>>;
}

/// What a [`Worker`] asks and says while it works.
#[derive(Clone)]
pub struct Watch {
    pub(super) name: Arc<str>,
    pub(super) works: Arc<AtomicBool>,
    pub(super) listener: Arc<dyn Listener>,
    pub(super) stop: watch::Receiver<bool>,
}

impl Watch {
    /// Tells whether it is to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        is_stopped(&self.stop)
    }

    /// Waits until it is to stop.
    pub async fn stopped(&self) {
        stopped(&self.stop).await;
    }

    /// Waits for so long, or until it is to stop.
    pub async fn pause(&self, wait: Duration) {
        until_stop(&self.stop, wait).await;
    }

    /// It works: what it needs answers.
    pub fn works(&self) {
        self.works.store(true, Ordering::Relaxed);
    }

    /// What it needs fails. It is not ready until it [works](Self::works), and a person hears of it once.
    pub fn fails(&self, error: &(dyn Error + 'static)) {
        if self.works.swap(false, Ordering::Relaxed) {
            self.alert(AlertKind::BackendFails, 1, &error.to_string());
        }
    }

    /// Tells a person something, in the worker's name.
    pub fn alert(&self, kind: AlertKind, count: u64, detail: &str) {
        let alert = Alert::general(kind, count).with_detail(format!("{}: {detail}", self.name));
        self.listener.alert(&alert);
    }

    /// Returns who hears of it.
    #[must_use]
    pub fn listener(&self) -> &dyn Listener {
        &*self.listener
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
