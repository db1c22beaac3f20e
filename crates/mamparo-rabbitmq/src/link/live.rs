//! One connection and one channel, made when they are needed.

use std::sync::Arc;
use std::time::Duration;

use lapin::options::ConfirmSelectOptions;
use lapin::types::ShortString;
use lapin::{Channel, Connection, ConnectionProperties};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::error::{ANSWER, RabbitError, Trouble, trouble};
use crate::Settings;

/// How often is looked whether a connection is still open while an answer is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// A connection that is open, or was a moment ago.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) connection: Connection,
    pub(crate) channel: Channel,
}

impl Live {
    pub(crate) fn is_open(&self) -> bool {
        self.connection.status().connected() && self.channel.status().connected()
    }

    /// Waits for an answer over it; one that is lost meanwhile may never give it.
    pub(crate) async fn answer<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let lost = async {
            while self.is_open() {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            biased;
            answer = answer => Some(answer),
            () = lost => None,
        }
    }
}

/// Connects, logs in and opens a channel.
///
/// # Errors
///
/// One line that says what to look at.
pub(crate) async fn open(settings: &Settings) -> Result<Live, RabbitError> {
    let (address, limit) = (settings.address(), settings.connect_timeout);
    let properties =
        ConnectionProperties::default().with_connection_name(settings.name.clone().into());
    let opened = timeout(limit, async {
        let connection = Connection::connect_uri(settings.uri.clone(), properties).await?;
        let channel = connection.create_channel().await?;
        Ok(Live {
            connection,
            channel,
        })
    });
    let Ok(opened) = opened.await else {
        let message = format!("RabbitMQ at {address} does not answer within {limit:?}");
        return Err(RabbitError::new(Trouble::Unavailable, message));
    };
    opened.map_err(|error| {
        let told = trouble(
            error,
            &format!("RabbitMQ at {address} as {}", settings.user()),
        );
        match told.trouble() {
            // A virtual host that is not there is no queue that is missing.
            Trouble::Unroutable | Trouble::Mismatch => told.with_trouble(Trouble::Refused),
            _ => told,
        }
    })
}

/// What publishers share: a channel that confirms.
#[derive(Debug)]
pub(crate) struct Link {
    settings: Settings,
    current: Mutex<Option<Arc<Live>>>,
}

impl Link {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            current: Mutex::new(None),
        }
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the channel, made anew if it was lost; one makes it, the others wait.
    pub(crate) async fn live(&self) -> Result<Arc<Live>, RabbitError> {
        let mut current = self.current.lock().await;
        if let Some(live) = current.as_ref().filter(|live| live.is_open()) {
            return Ok(Arc::clone(live));
        }
        // A channel that was closed leaves a connection that is good for another.
        if let Some(lost) = current.take() {
            close(&lost).await;
        }
        let live = open(&self.settings).await?;
        let options = ConfirmSelectOptions::default();
        let confirms = live.answer(live.channel.confirm_select(options));
        let confirms = timeout(ANSWER, confirms).await.ok().flatten();
        confirms
            .ok_or_else(RabbitError::lost)?
            .map_err(|error| trouble(error, "asking for confirmations"))?;
        let live = Arc::new(live);
        *current = Some(Arc::clone(&live));
        Ok(live)
    }

    pub(crate) async fn close(&self) {
        if let Some(live) = self.current.lock().await.take() {
            close(&live).await;
        }
    }
}

/// Says goodbye, if anyone still listens.
pub(crate) async fn close(live: &Live) {
    let goodbye = live.connection.close(200, ShortString::default());
    drop(timeout(GOODBYE, goodbye).await);
}

/// As long as a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// A name as the protocol has it, of at most 255 bytes; those are checked where they come in, and a longer one is cut.
pub(crate) fn short(text: &str) -> ShortString {
    let mut end = text.len().min(255);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    ShortString::try_new(&text[..end]).unwrap_or_default()
}
