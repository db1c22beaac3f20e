//! Whether a consumer takes messages.

use mamparo_core::BoxError;
use tokio::sync::watch;

/// Whether a consumer has its queues and takes messages; clones are of the same consumer.
///
/// As a check of a server's readiness: `Readiness::builder().check("payments", { let status = …; move || status.clone().check() })`.
#[derive(Clone, Debug)]
pub struct ConsumerStatus(watch::Receiver<bool>);

impl ConsumerStatus {
    pub(super) fn pair() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Tells whether it takes messages now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.0.borrow() && self.0.has_changed().is_ok()
    }

    /// Waits until it takes messages; for ever, if its consumer has ended.
    pub async fn ready(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|ready| *ready).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Succeeds when it takes messages.
    ///
    /// # Errors
    ///
    /// A text that says that it doesn't.
    pub async fn check(self) -> Result<(), BoxError> {
        if self.is_ready() {
            return Ok(());
        }
        Err("the consumer has no connection to its queue".into())
    }
}
