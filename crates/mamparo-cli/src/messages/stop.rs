//! When to stop.

use tokio::signal::unix::{SignalKind, signal};

use crate::defer::Trouble;

/// Listens from now on; what it returns ends at SIGTERM or SIGINT.
pub(super) fn stop() -> Result<impl Future<Output = ()>, Trouble> {
    let listen = |kind| {
        let heard = signal(kind);
        heard.map_err(|error| Trouble::away(format!("no signals can be heard: {error}")))
    };
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
