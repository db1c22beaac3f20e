//! One message: handled, judged, settled.

use std::any::Any;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use lapin::Acker;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use mamparo_core::{BoxError, Classify, Verdict, chain, clock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tower_service::Service;

use super::report::ConsumerEvent;
use super::run::said;
use super::settings::Rules;
use super::settle::{Outcome, Settled, settle};
use crate::link::Waits;
use crate::message::{Copied, attempts_made, copy};
use crate::{Delivery, Message, Publisher, RabbitError, Topology, Trouble};

/// A service, and what every message is handled with.
pub(super) struct Work<S, C> {
    pub(super) service: S,
    pub(super) desk: Arc<Desk<C>>,
}

/// What every message is handled with, apart from the service.
pub(super) struct Desk<C> {
    pub(super) classifier: C,
    pub(super) publisher: Publisher,
    pub(super) topology: Topology,
    pub(super) rules: Rules,
    pub(super) places: Arc<Semaphore>,
    pub(super) stop: watch::Receiver<bool>,
}

impl<S: Clone, C> Clone for Work<S, C> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
            desk: Arc::clone(&self.desk),
        }
    }
}

impl<S, C> Work<S, C>
where
    S: Service<Delivery> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    S::Response: Send,
    C: Classify<S::Response>,
{
    /// Handles a message that has a place, and settles it.
    pub(super) async fn settle(self, raw: lapin::message::Delivery, _place: OwnedSemaphorePermit) {
        let Self { service, desk } = self;
        let acker = raw.acker.clone();
        // Of a connection that is lost: it is delivered over the next.
        if acker.poisoned() {
            return;
        }
        let delivery = desk.delivery(raw);
        let began = clock::now();
        let (outcome, detail) = desk.attempt(service, &delivery).await;
        let took = clock::now() - began;
        desk.settle(&acker, &delivery, &outcome, &detail, took)
            .await;
    }
}

impl<C> Desk<C> {
    /// Waits until one more message may be handled; never `None`, since nobody closes it.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Waits until it is to stop, or nobody is left to tell it.
    pub(super) async fn stopped(&self) {
        let mut stop = self.stop.clone();
        drop(stop.wait_for(|stop| *stop).await);
    }

    /// Waits for so long, and tells whether it is to stop instead.
    pub(super) async fn stops_within(&self, wait: Duration) -> bool {
        timeout(wait, self.stopped()).await.is_ok()
    }

    async fn settle(
        &self,
        acker: &Acker,
        delivery: &Delivery,
        outcome: &Outcome,
        detail: &str,
        took: Duration,
    ) {
        let (max, panics) = (self.rules.max_attempts, self.rules.panics);
        let settled = settle(outcome, delivery.attempt, max, panics);
        let topology = &self.topology;
        let (queue, copied) = match settled {
            Settled::Done => {
                if acknowledge(acker).await {
                    self.tell(delivery, settled, detail, took);
                }
                return;
            }
            Settled::Retry { attempts, hint } => {
                let (queue, _) = topology.retry_after(attempts, hint.unwrap_or_default());
                (queue, Copied::Retry { attempts })
            }
            Settled::Dead { attempts, reason } => {
                let (reason, at) = (reason.as_str(), self.rules.clock.now());
                let copied = Copied::Dead {
                    attempts,
                    reason,
                    detail,
                    at,
                    topology,
                };
                (topology.dead_letters(), copied)
            }
        };
        if self.hand_on(acker, delivery, &queue, copied).await {
            self.tell(delivery, settled, detail, took);
        }
    }

    fn tell(&self, delivery: &Delivery, settled: Settled, detail: &str, took: Duration) {
        self.rules.report.tell(&ConsumerEvent::Settled {
            topology: &self.topology,
            delivery,
            settled,
            detail,
            took,
        });
    }

    fn delivery(&self, raw: lapin::message::Delivery) -> Delivery {
        Delivery {
            queue: self.topology.queue.clone(),
            exchange: raw.exchange.into(),
            routing_key: raw.routing_key.into(),
            attempt: attempts_made(&raw.properties, self.rules.max_attempts) + 1,
            redelivered: raw.redelivered,
            properties: raw.properties,
            body: Bytes::from(raw.data),
        }
    }

    async fn attempt<S>(&self, service: S, delivery: &Delivery) -> (Outcome, String)
    where
        S: Service<Delivery>,
        S::Error: Into<BoxError>,
        C: Classify<S::Response>,
    {
        let (bytes, most) = (delivery.body.len(), self.rules.max_bytes);
        if bytes > most {
            return (
                Outcome::TooBig,
                format!("{bytes} bytes, of which {most} are read"),
            );
        }
        let limit = self.rules.handler_timeout;
        let judged = AssertUnwindSafe(self.judged(service, delivery.clone())).catch_unwind();
        match timeout(limit, judged).await {
            Err(_) => (Outcome::TimedOut, format!("no answer within {limit:?}")),
            Ok(Err(panic)) => (Outcome::Panicked, panicked(&*panic)),
            Ok(Ok((verdict, detail))) => (Outcome::Judged(verdict), detail),
        }
    }

    /// Asks the service, and judges what it says; either may panic.
    async fn judged<S>(&self, service: S, delivery: Delivery) -> (Verdict, String)
    where
        S: Service<Delivery>,
        S::Error: Into<BoxError>,
        C: Classify<S::Response>,
    {
        match ask(service, delivery).await {
            Ok(answer) => {
                let verdict = self.classifier.head(Ok(&answer)).verdict;
                (verdict, verdict.as_str().to_owned())
            }
            Err(error) => {
                let verdict = self.classifier.head(Err(&error)).verdict;
                (verdict, whole(&error))
            }
        }
    }

    /// Publishes a copy, and acknowledges the original once that is confirmed; tells whether it is done with.
    async fn hand_on(
        &self,
        acker: &Acker,
        delivery: &Delivery,
        queue: &str,
        copied: Copied<'_>,
    ) -> bool {
        let properties = copy(
            &delivery.properties,
            &delivery.exchange,
            &delivery.routing_key,
            copied,
        );
        let message = Message {
            body: delivery.body.clone(),
            properties,
        };
        let exchange = self.topology.exchange();
        let mut waits = Waits::default();
        loop {
            // The broker delivers it again: a copy would be a second message, and an attempt that nobody made.
            if acker.poisoned() {
                return false;
            }
            let published = self
                .publisher
                .publish(&exchange, queue, message.clone())
                .await;
            let Err(error) = published else {
                return acknowledge(acker).await;
            };
            self.rules.report.tell(&ConsumerEvent::Unsettled {
                delivery,
                error: &error,
            });
            if error.trouble() == Trouble::Unroutable {
                self.declare_again(delivery).await;
            }
            if self.stops_within(waits.next()).await {
                give_back(acker).await;
                return false;
            }
        }
    }

    /// Somebody deleted a queue.
    async fn declare_again(&self, delivery: &Delivery) {
        let declared: Result<(), RabbitError> = self.publisher.declare(&self.topology).await;
        if let Err(error) = &declared {
            self.rules
                .report
                .tell(&ConsumerEvent::Unsettled { delivery, error });
        }
    }
}

/// Waits until the service is ready, then calls it.
async fn ask<S>(mut service: S, delivery: Delivery) -> Result<S::Response, BoxError>
where
    S: Service<Delivery>,
    S::Error: Into<BoxError>,
{
    poll_fn(|context| service.poll_ready(context))
        .await
        .map_err(Into::into)?;
    service.call(delivery).await.map_err(Into::into)
}

/// As long as it may take to tell the broker what became of a message: the words only have to be written.
const TELLING: Duration = Duration::from_secs(10);

/// Tells whether the broker was told; otherwise the connection is lost, and it delivers the message again.
async fn acknowledge(acker: &Acker) -> bool {
    let told = timeout(TELLING, acker.ack(BasicAckOptions::default())).await;
    matches!(told, Ok(Ok(true)))
}

/// Puts a message back where it was.
pub(super) async fn give_back(acker: &Acker) {
    let options = BasicNackOptions {
        requeue: true,
        ..BasicNackOptions::default()
    };
    // Where the connection is lost, the broker does it itself.
    drop(timeout(TELLING, acker.nack(options)).await);
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    format!("the handler panicked: {}", said(panic))
}

/// An error and its causes, in one line.
fn whole(error: &BoxError) -> String {
    let all: Vec<String> = chain::chain(&**error).map(ToString::to_string).collect();
    all.join(": ")
}
