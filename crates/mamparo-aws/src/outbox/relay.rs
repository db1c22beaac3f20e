//! Carries out what whoever committed it did not live to.

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use mamparo_durable::backend::{BackendError, BoxFuture};
use mamparo_durable::machine::AlertKind;
use mamparo_durable::supervise::{Watch, Worker};

use super::carrier::Carrier;
use super::notes::{Note, Notes};

/// How often each slot is looked into.
pub(super) const EVERY: Duration = Duration::from_secs(10);

/// As many notes are carried out at once.
const AT_ONCE: usize = 16;

/// The worker that finishes what others began. Any number of engines have one.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) carrier: Carrier,
    pub(super) notes: Notes,
    /// A fifth more or less, so that engines don't look in step.
    pub(super) every: Duration,
}

impl Worker for Relay {
    fn name(&self) -> &str {
        "aws outbox"
    }

    fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            while !watch.is_stopped() {
                match self.round(&watch).await {
                    Ok(_) => watch.works(),
                    Err(error) => watch.fails(&error),
                }
                watch
                    .pause(self.every.mul_f64(fastrand::f64().mul_add(0.4, 0.8)))
                    .await;
            }
            Ok(())
        })
    }
}

impl Relay {
    /// Carries out all that was left; one that fails stops no other. Returns how many were done.
    async fn round(&self, watch: &Watch) -> Result<u64, BackendError> {
        let (mut done, mut failed) = (0, None);
        for slot in Notes::slots() {
            let mut from = None;
            loop {
                let page = self
                    .notes
                    .left(slot, from, self.carrier.store.now())
                    .await?;
                if page.unreadable > 0 {
                    let words = format!("slot {slot} has notes that can't be read");
                    watch.alert(AlertKind::CorruptRecord, page.unreadable, &words);
                }
                let notes = page.notes.iter();
                let finishing: Vec<_> = notes.map(|note| self.finish(note, watch)).collect();
                let mut finished = stream::iter(finishing).buffer_unordered(AT_ONCE);
                while let Some(finished) = finished.next().await {
                    match finished {
                        Ok(finished) => done += u64::from(finished),
                        Err(error) => failed = Some(error),
                    }
                }
                from = page.next;
                if from.is_none() || watch.is_stopped() {
                    break;
                }
            }
        }
        failed.map_or(Ok(done), Err)
    }

    async fn finish(&self, note: &Note, watch: &Watch) -> Result<bool, BackendError> {
        if !self.notes.claim(note, self.carrier.store.now()).await? {
            return Ok(false);
        }
        if self.carrier.carry(&note.id, &note.effects).await? {
            watch.alert(AlertKind::ScheduleConflict, 1, note.id.as_str());
        }
        self.notes.delete(note).await?;
        Ok(true)
    }
}
