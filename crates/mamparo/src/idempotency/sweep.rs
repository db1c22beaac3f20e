//! Removing keys that are past their retention.

use std::time::Duration;

use mamparo_core::BoxError;
use tokio::time::sleep;

use super::IdempotencyStore;

/// How many keys one batch removes at most.
pub const SWEEP_BATCH: usize = 500;

/// The wait between two full batches, in which others get their turn at the store.
const BETWEEN_BATCHES: Duration = Duration::from_millis(20);

/// Removes keys that are past their retention, in batches of [`SWEEP_BATCH`], and looks again that often; never ends.
///
/// For stores that don't sweep themselves, in a task of its own. What fails is told, and tried again the next time.
///
/// ```
/// use mamparo::idempotency::{self, MemoryStore};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let store = MemoryStore::new();
/// tokio::spawn(idempotency::sweep_every(Duration::from_secs(60), store.clone(), |failed| {
///     eprintln!("keys not swept: {failed}");
/// }));
/// # }
/// ```
pub async fn sweep_every<St: IdempotencyStore>(
    pause: Duration,
    store: St,
    failed: impl Fn(&BoxError) + Send,
) {
    loop {
        match store.sweep(SWEEP_BATCH).await {
            Ok(swept) if swept >= SWEEP_BATCH => sleep(BETWEEN_BATCHES).await,
            Ok(_) => sleep(pause).await,
            Err(error) => {
                failed(&error.into());
                sleep(pause).await;
            }
        }
    }
}
