//! What goes to SQS in batches, and what is made of a batch that was done in part.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry,
    DeleteMessageBatchRequestEntry, MessageAttributeValue, SendMessageBatchRequestEntry,
};
use mamparo_durable::backend::{BackendError, BoxFuture, Trouble};
use mamparo_durable::machine::Utc;

use super::Place;
use super::place::Address;
use crate::connection::{Service, trouble};
use crate::gather::{Flight, Gather};

/// As many entries as SQS takes in one request, and as many bytes.
pub(super) const BATCH: usize = 10;
const ROOM: usize = 1024 * 1024;

/// As many bytes as a message may have beside its body.
const BESIDE: usize = 512;

/// As often is one entry of a batch tried by itself that failed in it, and the pause before the first of these; it doubles.
const ALONE: u32 = 4;
const PAUSE: Duration = Duration::from_millis(50);

/// As long as SQS delays a message at most.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(900);

/// As long as SQS hides a message that was taken at most.
const LONGEST_LEASE: Duration = Duration::from_secs(43_200);

/// How often a message was delivered before it was copied, and when the first copy was published.
pub(super) const DELIVERIES: &str = "deliveries";
pub(super) const SINCE: &str = "since";

/// A message to send.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) body: String,
    /// How often it was delivered already, as another message of SQS.
    pub(crate) deliveries: u32,
    /// When it was first published, if that is not now.
    pub(crate) since: Option<Utc>,
    pub(crate) delay: Duration,
}

/// A message to delete, by its receipt handle.
#[derive(Clone, Debug)]
pub(super) struct Delete(pub(super) String);

/// A message to hide for so long, by its receipt handle.
#[derive(Clone, Debug)]
pub(super) struct Hide(pub(super) String, pub(super) Duration);

/// One entry of a batch.
pub(super) trait Entry: Send + Sync + 'static {
    /// Whether a refusal means that another has the message by now, so that nothing is to be done.
    const LEASED: bool;

    /// Sends these in one request; each goes by its number. Returns what was not done of it.
    fn send<'a>(
        entries: Vec<(usize, &'a Self)>,
        place: &'a Place,
        to: &'a Address,
    ) -> BoxFuture<'a, Result<Vec<BatchResultErrorEntry>, BackendError>>;
}

/// Gathers entries for one queue.
pub(super) fn gather<T: Entry>(place: &Arc<Place>) -> Gather<T> {
    let place = Arc::clone(place);
    Gather::new(BATCH, ROOM, move |entries: Vec<T>| -> Flight {
        let place = Arc::clone(&place);
        Box::pin(async move { all(&entries, &place).await })
    })
}

impl Outgoing {
    /// Returns as many bytes as it takes of a request.
    pub(crate) const fn bytes(&self) -> usize {
        self.body.len() + BESIDE
    }
}

/// Rounds up: nothing comes before it should.
pub(crate) fn seconds(duration: Duration, most: Duration) -> i32 {
    let whole = duration.min(most).as_millis().div_ceil(1000);
    i32::try_from(whole).unwrap_or(i32::MAX)
}

pub(super) fn lease_seconds(lease: Duration) -> i32 {
    seconds(lease, LONGEST_LEASE)
}

/// A lease as it is held, which is in whole seconds.
pub(super) fn whole(lease: Duration) -> Duration {
    Duration::from_secs(lease_seconds(lease).unsigned_abs().into())
}

/// Sends a batch; what failed in it for a moment is tried again alone, so that one entry holds up no other.
async fn all<T: Entry>(entries: &[T], place: &Place) -> Vec<Result<(), BackendError>> {
    let to = match place.address().await {
        Ok(to) => to,
        Err(error) => return alike(&error, entries.len()),
    };
    let numbered = entries.iter().enumerate().collect();
    let failed = match T::send(numbered, place, to).await {
        Ok(failed) => failed,
        Err(error) => return alike(&error, entries.len()),
    };
    let mut told: Vec<_> = entries.iter().map(|_| Ok(())).collect();
    for failure in failed {
        let number = failure.id.parse().unwrap_or(usize::MAX);
        if let (Some(entry), Some(told)) = (entries.get(number), told.get_mut(number)) {
            *told = alone(entry, failure, place, to).await;
        }
    }
    told
}

async fn alone<T: Entry>(
    entry: &T,
    mut failure: BatchResultErrorEntry,
    place: &Place,
    to: &Address,
) -> Result<(), BackendError> {
    for attempt in 0..ALONE {
        if failure.sender_fault {
            return if T::LEASED {
                Ok(())
            } else {
                Err(refused(&failure, place))
            };
        }
        let pause = PAUSE * 2_u32.pow(attempt);
        tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
        match T::send(vec![(0, entry)], place, to).await?.pop() {
            None => return Ok(()),
            Some(again) => failure = again,
        }
    }
    Err(refused(&failure, place))
}

fn refused(failure: &BatchResultErrorEntry, place: &Place) -> BackendError {
    let kind = if failure.sender_fault {
        Trouble::Refused
    } else {
        Trouble::Unavailable
    };
    let (code, said) = (
        &failure.code,
        failure.message.as_deref().unwrap_or_default(),
    );
    BackendError::new(
        kind,
        format!("SQS refuses a message for {}: {code} {said}", place.about()),
    )
}

/// One error is everybody's.
fn alike(error: &BackendError, many: usize) -> Vec<Result<(), BackendError>> {
    let same = || Err(BackendError::new(error.trouble(), error.to_string()));
    (0..many).map(|_| same()).collect()
}

impl Entry for Outgoing {
    const LEASED: bool = false;

    fn send<'a>(
        entries: Vec<(usize, &'a Self)>,
        place: &'a Place,
        to: &'a Address,
    ) -> BoxFuture<'a, Result<Vec<BatchResultErrorEntry>, BackendError>> {
        Box::pin(async move {
            let mut request = place.aws().sqs().send_message_batch().queue_url(&to.url);
            for (number, entry) in entries {
                request = request.entries(entry.request(number)?);
            }
            let sent = request.send().await;
            sent.map(|done| done.failed)
                .map_err(|error| trouble(Service::Sqs, &place.about(), error))
        })
    }
}

impl Outgoing {
    fn request(&self, number: usize) -> Result<SendMessageBatchRequestEntry, BackendError> {
        let mut entry = SendMessageBatchRequestEntry::builder()
            .id(number.to_string())
            .message_body(&self.body)
            .delay_seconds(seconds(self.delay, LONGEST_DELAY));
        if self.deliveries > 0 {
            entry = entry.message_attributes(DELIVERIES, count(self.deliveries.into())?);
        }
        if let Some(since) = self.since {
            entry = entry.message_attributes(SINCE, count(since.millis())?);
        }
        entry.build().map_err(unbuilt)
    }
}

fn count(value: i64) -> Result<MessageAttributeValue, BackendError> {
    let attribute = MessageAttributeValue::builder().data_type("Number");
    attribute
        .string_value(value.to_string())
        .build()
        .map_err(unbuilt)
}

fn unbuilt(error: impl std::error::Error + Send + Sync + 'static) -> BackendError {
    BackendError::new(Trouble::Refused, "a request to SQS lacks something").from_source(error)
}

impl Entry for Delete {
    const LEASED: bool = true;

    fn send<'a>(
        entries: Vec<(usize, &'a Self)>,
        place: &'a Place,
        to: &'a Address,
    ) -> BoxFuture<'a, Result<Vec<BatchResultErrorEntry>, BackendError>> {
        Box::pin(async move {
            let mut request = place.aws().sqs().delete_message_batch().queue_url(&to.url);
            for (number, entry) in entries {
                let one = DeleteMessageBatchRequestEntry::builder().id(number.to_string());
                request = request.entries(one.receipt_handle(&entry.0).build().map_err(unbuilt)?);
            }
            let sent = request.send().await;
            sent.map(|done| done.failed)
                .map_err(|error| trouble(Service::Sqs, &place.about(), error))
        })
    }
}

impl Entry for Hide {
    const LEASED: bool = true;

    fn send<'a>(
        entries: Vec<(usize, &'a Self)>,
        place: &'a Place,
        to: &'a Address,
    ) -> BoxFuture<'a, Result<Vec<BatchResultErrorEntry>, BackendError>> {
        Box::pin(async move {
            let sqs = place.aws().sqs();
            let mut request = sqs.change_message_visibility_batch().queue_url(&to.url);
            for (number, entry) in entries {
                let one = ChangeMessageVisibilityBatchRequestEntry::builder()
                    .id(number.to_string())
                    .receipt_handle(&entry.0)
                    .visibility_timeout(lease_seconds(entry.1));
                request = request.entries(one.build().map_err(unbuilt)?);
            }
            let sent = request.send().await;
            sent.map(|done| done.failed)
                .map_err(|error| trouble(Service::Sqs, &place.about(), error))
        })
    }
}
