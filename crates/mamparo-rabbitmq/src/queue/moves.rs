//! What becomes of a message: handed out, put off, buried.

use std::sync::PoisonError;
use std::time::Duration;

use mamparo_core::clock::SystemClock;
use mamparo_durable::backend::{Delivery, Message, Receipt};
use mamparo_durable::machine::Utc;

use super::RabbitQueue;
use super::desk::{Delivered, Leased};
use super::wire::{delivery_number, next_letter, not_before, read, since};
use crate::message::{Copied, copy, headers, with_number};
use crate::{RabbitError, Trouble};

/// What becomes of a message that is not handed out.
enum Instead {
    Bury { why: String, spent: bool },
    Wait(Duration),
}

impl RabbitQueue {
    pub(super) async fn take_now(
        &self,
        max: usize,
        lease: Duration,
    ) -> Result<Vec<Delivery>, RabbitError> {
        let session = self.session().await?;
        if self.desk.in_line() == 0 {
            session.catch_up(self.topology.queue()).await?;
        }
        let mut taken = Vec::new();
        while taken.len() < max {
            let Some(leased) = self.desk.lease(lease) else {
                break;
            };
            let receipt = self.receipt(&leased);
            let done = match self.judge(&leased.delivered) {
                Ok((message, number, since)) => {
                    taken.push(Delivery::new(message, number, since, receipt));
                    continue;
                }
                Err(Instead::Bury { why, spent }) => self.bury_now(&receipt, &why, spent).await,
                Err(Instead::Wait(wait)) => self.release_now(&receipt, wait, false).await,
            };
            match done {
                Err(error) if taken.is_empty() => return Err(error),
                Err(_) => break,
                Ok(()) => {}
            }
        }
        Ok(taken)
    }

    /// Reads what was delivered, or says what becomes of it instead.
    fn judge(&self, delivered: &Delivered) -> Result<(Message, u32, Utc), Instead> {
        let (properties, now) = (&delivered.properties, now());
        let number = delivery_number(properties);
        if number > self.redelivery_limit {
            let why = format!("delivered {} times", number - 1);
            return Err(Instead::Bury { why, spent: false });
        }
        let wait = not_before(properties).map(|instant| instant.since(now));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Err(Instead::Wait(wait));
        }
        let message = read(self.name, properties, &delivered.body);
        let message = message.map_err(|what| Instead::Bury {
            why: format!("can't be read: {what}"),
            spent: true,
        })?;
        Ok((message, number, since(properties).unwrap_or(now)))
    }

    const fn receipt(&self, leased: &Leased) -> Receipt {
        Receipt {
            queue: self.name,
            message: leased.message,
            lease: leased.lease,
            handle: None,
        }
    }

    pub(super) async fn release_now(
        &self,
        receipt: &Receipt,
        delay: Duration,
        spent: bool,
    ) -> Result<(), RabbitError> {
        let Some((settling, delivered)) = self.desk.settle(receipt) else {
            return Ok(());
        };
        let attempts = delivery_number(&delivered.properties) - u32::from(!spent);
        let mut message = copied(&delivered, Copied::Retry { attempts });
        let mut to = self.topology.queue().to_owned();
        if !delay.is_zero() {
            let (retry, step) = self.topology.retry_after(1, delay);
            to = retry;
            if step < delay {
                let until = now().plus(delay).millis();
                message.properties = with_number(message.properties, headers::NOT_BEFORE, until);
            }
        }
        self.send(&to, message).await?;
        settling.acknowledge().await
    }

    pub(super) async fn bury_now(
        &self,
        receipt: &Receipt,
        why: &str,
        spent: bool,
    ) -> Result<(), RabbitError> {
        let Some((settling, delivered)) = self.desk.settle(receipt) else {
            return Ok(());
        };
        let now = now();
        let mut message = copied(
            &delivered,
            Copied::Dead {
                attempts: delivery_number(&delivered.properties) - u32::from(!spent),
                reason: if spent { "buried" } else { "exhausted" },
                detail: why,
                at: now.to_system_time(),
                topology: &self.topology,
            },
        );
        let number = self.next_letter(now);
        message.properties = with_number(message.properties, headers::DEAD_NUMBER, number);
        self.send(&self.topology.dead_letters(), message).await?;
        settling.acknowledge().await
    }

    fn next_letter(&self, now: Utc) -> i64 {
        let mut last = self
            .last_letter
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = next_letter(*last, now);
        i64::try_from(*last).unwrap_or(i64::MAX)
    }

    /// Publishes to one of our queues; where somebody has deleted it, it is declared again.
    pub(super) async fn send(
        &self,
        queue: &str,
        message: crate::Message,
    ) -> Result<(), RabbitError> {
        match self.publisher.publish("", queue, message.clone()).await {
            Err(error) if error.trouble() == Trouble::Unroutable => {
                self.declare().await?;
                self.publisher.publish("", queue, message).await
            }
            sent => sent,
        }
    }
}

pub(super) fn now() -> Utc {
    Utc::of(&SystemClock)
}

fn copied(delivered: &Delivered, how: Copied<'_>) -> crate::Message {
    crate::Message {
        body: delivered.body.clone(),
        properties: copy(
            &delivered.properties,
            &delivered.exchange,
            &delivered.routing_key,
            how,
        ),
    }
}
