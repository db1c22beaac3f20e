//! Dead letters, by number.

use std::collections::HashSet;
use std::future::pending;

use mamparo_durable::backend::{DeadLetter, QueueName};
use mamparo_durable::machine::Label;

use super::wire::{buried_at, letter_number, read};
use crate::message::headers;
use crate::{DeadLetters, Letter, Message, Publisher, RabbitError, Selection, Trouble};

/// The dead letters of a queue of the engine's.
#[derive(Clone, Debug)]
pub(super) struct Letters {
    pub(super) letters: DeadLetters,
    pub(super) publisher: Publisher,
    pub(super) name: QueueName,
}

impl Letters {
    pub(super) async fn dead(
        &self,
        after: Option<u64>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, RabbitError> {
        let all = Selection::first(usize::MAX);
        let letters = self.list(all).await?;
        let mut dead: Vec<DeadLetter> = letters
            .iter()
            .map(|letter| dead_letter(self.name, letter))
            .filter(|letter| after.is_none_or(|after| letter.number > after))
            .collect();
        dead.sort_by_key(|letter| letter.number);
        dead.truncate(max);
        Ok(dead)
    }

    pub(super) async fn requeue(self, numbers: Vec<u64>) -> Result<usize, RabbitError> {
        let wanted = of_these(numbers);
        let selection = Selection {
            wanted: &wanted,
            ..Selection::first(usize::MAX)
        };
        let requeued = self.letters.requeue(selection, pending()).await?;
        Ok(requeued.len())
    }

    /// Notes them in `<queue>.discarded` first: who dies in between has noted some that are still there.
    pub(super) async fn discard(
        self,
        numbers: Vec<u64>,
        reason: Label,
    ) -> Result<usize, RabbitError> {
        let wanted = of_these(numbers);
        let selection = || Selection {
            wanted: &wanted,
            ..Selection::first(usize::MAX)
        };
        let found = self.list(selection()).await?;
        if found.is_empty() {
            return Ok(0);
        }
        let kept = format!("{}.discarded", self.letters.queue());
        self.publisher.declare_kept(&kept).await?;
        for letter in found {
            let message =
                Message::with_properties(letter.body().clone(), letter.properties().clone())
                    .header(headers::DISCARD_REASON, reason.as_str());
            self.publisher.publish("", &kept, message).await?;
        }
        let discarded = self.letters.discard(selection(), pending()).await?;
        Ok(discarded.len())
    }

    /// Where nothing was ever declared, there are none.
    async fn list(&self, selection: Selection<'_>) -> Result<Vec<Letter>, RabbitError> {
        match self.letters.list(selection).await {
            Err(error) if error.trouble() == Trouble::Unroutable => Ok(Vec::new()),
            listed => listed,
        }
    }
}

fn number(letter: &Letter) -> u64 {
    letter_number(letter.properties(), letter.body())
}

fn of_these(numbers: Vec<u64>) -> impl Fn(&Letter) -> bool + Send + Sync {
    let numbers: HashSet<u64> = numbers.into_iter().collect();
    move |letter| numbers.contains(&number(letter))
}

fn dead_letter(name: QueueName, letter: &Letter) -> DeadLetter {
    let number = number(letter);
    let message = read(name, letter.properties(), letter.body()).ok();
    let why = match letter.detail() {
        "" => letter.reason(),
        detail => detail,
    };
    DeadLetter::new(
        number,
        message,
        why.into(),
        buried_at(number),
        letter.attempts(),
    )
}
