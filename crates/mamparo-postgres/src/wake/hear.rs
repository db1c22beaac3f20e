//! Listens for what other engines write.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::{sleep, timeout};

/// The wait before the connection is made again, at first; twice as long each time, up to the last.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LAST_WAIT: Duration = Duration::from_secs(10);

/// A connection that was silent for so long is made again: it may have been cut without a word.
const LONGEST_SILENCE: Duration = Duration::from_secs(120);

/// Hears what others write, for ever: each payload, and nothing at all where some may have been lost.
pub(crate) async fn hear(
    server: PgConnectOptions,
    channel: String,
    connect: Duration,
    heard: impl Fn(Option<&str>),
) {
    let mut wait = FIRST_WAIT;
    loop {
        if let Ok(Ok(listener)) = timeout(connect, listen(&server, &channel, connect)).await {
            wait = FIRST_WAIT;
            // What was notified before is lost.
            heard(None);
            listen_to(listener, &heard).await;
        }
        sleep(wait.mul_f64(0.5 + fastrand::f64())).await;
        wait = (wait * 2).min(LAST_WAIT);
    }
}

async fn listen(
    server: &PgConnectOptions,
    channel: &str,
    connect: Duration,
) -> Result<PgListener, sqlx::Error> {
    // A pool of its own, for its one connection is never given back.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(connect)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(server.clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(channel).await?;
    Ok(listener)
}

/// Returns when the connection is lost, or silent for too long.
async fn listen_to(mut listener: PgListener, heard: &impl Fn(Option<&str>)) {
    while let Ok(Ok(Some(notification))) = timeout(LONGEST_SILENCE, listener.try_recv()).await {
        heard(Some(notification.payload()));
    }
}
