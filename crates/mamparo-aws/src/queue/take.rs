//! Takes messages, at once or by a long poll, and sorts out those that are nobody's to handle.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::types::{self, MessageSystemAttributeName as System};
use futures_util::future::join_all;
use mamparo_core::clock::{self, Instant};
use mamparo_core::fnv;
use mamparo_durable::backend::{BackendError, Delivery, Receipt};
use mamparo_durable::machine::Utc;
use tokio::sync::Notify;

use super::entries::{BATCH, DELIVERIES, LONGEST_DELAY, Outgoing, SINCE, lease_seconds, whole};
use super::held::Taken;
use super::sqs::Core;
use super::{Place, body};
use crate::connection::{Service, trouble};

/// As long as SQS lets a request wait for messages.
const LONG_POLL: Duration = Duration::from_secs(20);

/// After a long poll that failed, before whoever waits looks for itself.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What a long poll has found and nobody has taken, and whether one is under way.
#[derive(Debug, Default)]
pub(super) struct Kept {
    found: Mutex<VecDeque<Delivery>>,
    polls: AtomicBool,
    over: Notify,
    /// What the last take asked for, in milliseconds: a poll takes under the same lease.
    lease: AtomicU64,
}

impl Kept {
    pub(super) fn note_lease(&self, lease: Duration) {
        let millis = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        self.lease.store(millis, Ordering::Relaxed);
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(self.lease.load(Ordering::Relaxed))
    }

    fn is_empty(&self) -> bool {
        self.found().is_empty()
    }

    fn found(&self) -> MutexGuard<'_, VecDeque<Delivery>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for messages by a long poll. It is a task of its own, so that what it finds is kept when nobody waits any more.
pub(super) async fn until_found(queue: &Arc<Core>) {
    loop {
        let mut over = std::pin::pin!(queue.kept.over.notified());
        over.as_mut().enable();
        if !queue.kept.is_empty() {
            return;
        }
        if !queue.kept.polls.swap(true, Ordering::AcqRel) {
            tokio::spawn(poll(Arc::clone(queue)));
        }
        over.await;
    }
}

async fn poll(queue: Arc<Core>) {
    // Without a take before it, nobody would take what it finds.
    let lease = queue.kept.lease().max(Duration::from_secs(1));
    match receive(&queue, BATCH, lease, LONG_POLL).await {
        Ok(found) => queue.kept.found().extend(found),
        Err(_) => tokio::time::sleep(AFTER_FAILURE).await,
    }
    queue.kept.polls.store(false, Ordering::Release);
    queue.kept.over.notify_waiters();
}

/// Takes at most so many of those that a long poll has found. Those that lay about for long are held for longer first, or left to be
/// delivered again.
pub(super) async fn kept(queue: &Core, max: usize, lease: Duration) -> Vec<Delivery> {
    let found: Vec<Delivery> = {
        let mut found = queue.kept.found();
        let many = found.len().min(max);
        found.drain(..many).collect()
    };
    let enough = clock::later(clock::now(), lease * 2 / 3);
    let (short, long): (Vec<_>, Vec<_>) = found
        .into_iter()
        .filter(|delivery| queue.held.get(&delivery.receipt).is_some())
        .partition(|delivery| queue.held.ends(&delivery.receipt) < Some(enough));
    let receipts = short.iter().map(|delivery| delivery.receipt.clone());
    let extended = queue.extend(receipts.collect(), lease).await;
    let short = extended.map_or_else(|_| Vec::new(), |()| short);
    long.into_iter().chain(short).collect()
}

/// Takes what is there now.
pub(super) async fn now(
    queue: &Core,
    max: usize,
    lease: Duration,
) -> Result<Vec<Delivery>, BackendError> {
    let mut taken = kept(queue, max, lease).await;
    // A poll that brought less than it may has emptied the queue.
    let mut more = taken.is_empty() || taken.len() == BATCH;
    while more && taken.len() < max {
        let many = BATCH.min(max - taken.len());
        match receive(queue, many, lease, Duration::ZERO).await {
            Ok(found) => {
                more = found.len() == many;
                taken.extend(found);
            }
            // What was taken is handled; the next take meets the same error.
            Err(_) if !taken.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

async fn receive(
    queue: &Core,
    many: usize,
    lease: Duration,
    wait: Duration,
) -> Result<Vec<Delivery>, BackendError> {
    let asked = clock::now();
    let messages = ask(&queue.place, many, lease, wait).await?;
    // A lease begins when SQS answers. Of a request that does not wait that is no earlier than it was asked.
    let begins = if wait.is_zero() { asked } else { clock::now() };
    let until = clock::later(begins, whole(lease));
    let sorted = messages
        .into_iter()
        .map(|message| sort(queue, message, until));
    let sorted = join_all(sorted).await;
    Ok(sorted.into_iter().flatten().collect())
}

/// Asks for messages; those of a place that is not a queue of the engine's, too.
pub(super) async fn ask(
    place: &Place,
    many: usize,
    lease: Duration,
    wait: Duration,
) -> Result<Vec<types::Message>, BackendError> {
    let settings = place.aws().settings();
    let address = place.address().await?;
    let request = place
        .aws()
        .sqs()
        .receive_message()
        .queue_url(&address.url)
        .max_number_of_messages(i32::try_from(many).unwrap_or(1))
        .visibility_timeout(lease_seconds(lease))
        .wait_time_seconds(lease_seconds(wait))
        .message_system_attribute_names(System::SentTimestamp)
        .message_system_attribute_names(System::ApproximateReceiveCount)
        .message_attribute_names("All");
    let longer = TimeoutConfig::builder()
        .operation_attempt_timeout(settings.attempt_timeout + wait)
        .operation_timeout(settings.timeout + wait)
        .build();
    let longer = aws_sdk_sqs::config::Builder::new().timeout_config(longer);
    let answered = request.customize().config_override(longer).send().await;
    let answered = answered.map_err(|error| trouble(Service::Sqs, &place.about(), error))?;
    Ok(answered.messages.unwrap_or_default())
}

/// Notes a message under its lease and makes a delivery of it; `None` if there is nothing to handle in it.
async fn sort(queue: &Core, message: types::Message, until: Instant) -> Option<Delivery> {
    let taken = taken(&message, queue.place.aws().now());
    let receipt = Receipt {
        queue: queue.name,
        message: fnv::hash(message.message_id.unwrap_or_default().as_bytes()),
        lease: fnv::hash(taken.handle.as_bytes()),
        handle: Some(taken.handle.as_str().into()),
    };
    let (number, since) = (taken.number, taken.since);
    let read = body::read(queue.name, &taken.body);
    queue.held.add(&receipt, until, taken);
    let limit = queue.place.aws().settings().redelivery_limit;
    // Where one of these fails, the message comes again once its lease is over.
    match read {
        _ if number > limit => {
            let why = format!("delivered {} times", number - 1);
            drop(queue.file(&receipt, why.as_str().into(), number - 1).await);
        }
        Err(error) => drop(
            queue
                .file(&receipt, error.to_string().as_str().into(), number)
                .await,
        ),
        Ok((_, Some(due))) if due > queue.place.aws().now() => {
            let wait = due.since(queue.place.aws().now()).min(LONGEST_DELAY);
            drop(queue.copy(&receipt, wait).await);
        }
        Ok((message, Some(_))) if queue.recalled.has(&message) => {
            drop(queue.acknowledge(vec![receipt]).await);
        }
        Ok((message, due)) => {
            let since = due.unwrap_or(since);
            return Some(Delivery::new(message, number, since, receipt));
        }
    }
    None
}

pub(super) fn taken(message: &types::Message, now: Utc) -> Taken {
    let system = |name| message.attributes.as_ref()?.get(&name)?.parse().ok();
    let ours = |name| {
        let attribute = message.message_attributes.as_ref()?.get(name)?;
        attribute.string_value.as_ref()?.parse::<i64>().ok()
    };
    let count: i64 = system(System::ApproximateReceiveCount).unwrap_or(1);
    let before = ours(DELIVERIES).unwrap_or(0);
    let since = ours(SINCE).or_else(|| system(System::SentTimestamp));
    let number = before.saturating_add(count).clamp(1, u32::MAX.into());
    Taken {
        handle: message.receipt_handle.clone().unwrap_or_default(),
        body: message.body.clone().unwrap_or_default(),
        number: u32::try_from(number).unwrap_or(u32::MAX),
        since: since
            .and_then(|at| Utc::from_millis(at).ok())
            .unwrap_or(now),
    }
}

impl Outgoing {
    /// The same message once more, of which the delivery in hand does not count.
    pub(super) fn again(taken: &Taken, delay: Duration) -> Self {
        Self {
            body: taken.body.clone(),
            deliveries: taken.number.saturating_sub(1),
            since: Some(taken.since),
            delay,
        }
    }
}
