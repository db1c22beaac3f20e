//! `mamparo dlq`.

use std::collections::BTreeSet;

use mamparo_durable::backend::{Backend, DeadLetter, QueueName};
use serde_json::json;

use super::record;
use super::trouble::{Trouble, ended};
use super::tx::written;
use crate::args::{DeadArgs, DeadOneArgs, DiscardArgs, DlqCommand, HeapArgs, RequeueArgs};
use crate::exit::Exit;
use crate::messages;
use crate::output::{self, Progress};

/// As many are handled in one transaction of the store.
const BATCH: usize = 500;

/// Runs `mamparo dlq`.
pub(crate) async fn dlq(command: DlqCommand) -> Exit {
    ended(match command {
        command if command.heap().amqp.is_some() => messages::dlq(&command).await,
        DlqCommand::List(args) => list(&args).await,
        DlqCommand::Show(args) => show(&args).await,
        DlqCommand::Requeue(args) => put(&args, &Deed::Requeue).await,
        DlqCommand::Discard(DiscardArgs { which, reason }) => {
            put(&which, &Deed::Discard(reason)).await
        }
    })
}

impl DlqCommand {
    const fn heap(&self) -> &HeapArgs {
        match self {
            Self::List(args) => &args.heap,
            Self::Show(args) => &args.heap,
            Self::Requeue(args) | Self::Discard(DiscardArgs { which: args, .. }) => &args.heap,
        }
    }
}

impl RequeueArgs {
    /// Returns the numbers that were typed, each once.
    pub(crate) fn distinct(&self) -> Result<Vec<u64>, Trouble> {
        let numbers: BTreeSet<_> = self.numbers.iter().copied().collect();
        let (many, max) = (numbers.len(), self.max as usize);
        if many > max {
            let line = format!("{many} numbers are more than --max {max}");
            return Err(Trouble::usage(line));
        }
        Ok(numbers.into_iter().collect())
    }
}

async fn open(heap: &HeapArgs) -> Result<Backend, Trouble> {
    let store = heap.store.as_ref();
    let store = store.ok_or_else(|| Trouble::usage("say where: --store or --amqp"))?;
    store.open().await
}

fn named(queue: &str) -> Result<QueueName, Trouble> {
    let refuse = || Trouble::usage(format!("{queue}: it is one of answers, fires and requests"));
    QueueName::parse(queue).ok_or_else(refuse)
}

/// What is done with dead letters.
enum Deed {
    Requeue,
    Discard(String),
}

async fn list(args: &DeadArgs) -> Result<Exit, Trouble> {
    let backend = open(&args.heap).await?;
    let max = usize::try_from(args.max).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    let chosen = args.queue.as_deref().map(named).transpose()?;
    for queue in QueueName::ALL {
        if chosen.is_none_or(|chosen| chosen == queue) {
            let letters = backend.queue(queue).dead(None, max).await?;
            found.extend(letters.into_iter().map(|letter| (queue, letter)));
        }
    }
    if args.heap.json {
        let letters: Vec<_> = found
            .iter()
            .map(|(queue, it)| record::dead(*queue, it))
            .collect();
        return written(&format!("{:#}\n", json!({ "dead_letters": letters })));
    }
    let lines = found
        .iter()
        .map(|(queue, it)| record::dead_line(*queue, it) + "\n");
    written(&lines.collect::<String>())
}

async fn show(args: &DeadOneArgs) -> Result<Exit, Trouble> {
    let backend = open(&args.heap).await?;
    let queue = named(&args.queue)?;
    let letter = one(&backend, queue, args.number).await?;
    let letter = letter.ok_or_else(|| none(queue, args.number))?;
    let mut found = None;
    if let Some(message) = &letter.message {
        let loaded = backend.store().load(vec![message.id().clone()]).await;
        found = loaded.into_iter().next().transpose()?.flatten();
    }
    if args.heap.json {
        let mut json = record::dead(queue, &letter);
        json["transaction"] = found.as_ref().map(record::transaction).into();
        return written(&format!("{json:#}\n"));
    }
    let transaction =
        found.map_or_else(|| "no such transaction".to_owned(), |it| record::line(&it));
    written(&format!(
        "{}\n  {transaction}\n",
        record::dead_line(queue, &letter)
    ))
}

async fn one(
    backend: &Backend,
    queue: QueueName,
    number: u64,
) -> Result<Option<DeadLetter>, Trouble> {
    let before = number.checked_sub(1);
    let letters = backend.queue(queue).dead(before, 1).await?;
    Ok(letters.into_iter().find(|letter| letter.number == number))
}

async fn put(args: &RequeueArgs, deed: &Deed) -> Result<Exit, Trouble> {
    let backend = open(&args.heap).await?;
    let queue = named(&args.queue)?;
    let max = usize::try_from(args.max).unwrap_or(usize::MAX);
    let chosen = chosen(args, &backend, queue, max).await?;
    let mut done = 0;
    if !args.dry_run {
        let progress = Progress::new(!args.heap.json);
        for batch in chosen.chunks(BATCH) {
            let numbers = batch.to_vec();
            let queue = backend.queue(queue);
            done += match deed {
                Deed::Requeue => queue.requeue(numbers).await?,
                Deed::Discard(reason) => queue.discard(numbers, reason.as_str().into()).await?,
            };
            progress.at(done, Some(chosen.len()));
        }
    }
    let word = match deed {
        Deed::Requeue => "requeued",
        Deed::Discard(_) => "discarded",
    };
    if args.heap.json {
        let json = json!({ "queue": queue.as_str(), "numbers": chosen, word: done, "dry_run": args.dry_run });
        written(&format!("{json:#}\n"))?;
    } else if args.dry_run {
        written(&format!("{} would be {word}\n", chosen.len()))?;
    } else {
        written(&format!("{done} {word}\n"))?;
    }
    if args.all && chosen.len() >= max {
        output::warning(&format!("--max {max} is reached: there may be more"));
    }
    let missing = !args.dry_run && done < chosen.len();
    if missing && !args.heap.json {
        output::warning(&format!("{} were there no more", chosen.len() - done));
    }
    Ok(if missing {
        Exit::REFUSED
    } else {
        Exit::Success
    })
}

async fn chosen(
    args: &RequeueArgs,
    backend: &Backend,
    queue: QueueName,
    max: usize,
) -> Result<Vec<u64>, Trouble> {
    if !args.all {
        if args.dry_run {
            for number in &args.numbers {
                let there = one(backend, queue, *number).await?;
                there.ok_or_else(|| none(queue, *number))?;
            }
        }
        return args.distinct();
    }
    let mut numbers: Vec<u64> = Vec::new();
    while numbers.len() < max {
        let page = BATCH.min(max - numbers.len());
        let letters = backend
            .queue(queue)
            .dead(numbers.last().copied(), page)
            .await?;
        let last = letters.len() < page;
        numbers.extend(letters.iter().map(|letter| letter.number));
        if last {
            break;
        }
    }
    Ok(numbers)
}

fn none(queue: QueueName, number: u64) -> Trouble {
    let queue = queue.as_str();
    Trouble::refused(format!("there is no dead letter {number} of {queue}"))
}
