//! Listing, showing, giving back and removing.

use std::collections::BTreeSet;
use std::sync::Arc;

use mamparo_durable::events::{EventStore, ParkedEvent};
use serde_json::json;

use super::record;
use crate::args::{
    EventsCommand, OutboxArgs, ParkedArgs, ParkedDiscardArgs, ParkedManyArgs, ParkedOneArgs,
};
use crate::defer::{Trouble, ended, written};
use crate::exit::Exit;
use crate::output::{self, Progress};

/// As many are read, given back or removed at once: each is read with its payload.
const BATCH: usize = 100;

/// Runs `mamparo events`.
pub(crate) async fn events(command: EventsCommand) -> Exit {
    ended(match command {
        EventsCommand::List(args) => list(&args).await,
        EventsCommand::Show(args) => show(&args).await,
        EventsCommand::Requeue(args) => put(&args, None).await,
        EventsCommand::Discard(ParkedDiscardArgs { which, reason }) => {
            put(&which, Some(&reason)).await
        }
    })
}

async fn open(outbox: &OutboxArgs) -> Result<Arc<dyn EventStore>, Trouble> {
    outbox.store.events(outbox.schema.as_deref()).await
}

async fn list(args: &ParkedArgs) -> Result<Exit, Trouble> {
    let store = open(&args.outbox).await?;
    let max = usize::try_from(args.max).unwrap_or(usize::MAX);
    if args.outbox.json {
        let parked = page_by_page(&*store, args.after, max, record::in_json).await?;
        let parked: Vec<_> = parked.into_iter().map(|(_, json)| json).collect();
        return written(&format!("{:#}\n", json!({ "parked": parked })));
    }
    let parked = page_by_page(&*store, args.after, max, record::line).await?;
    let lines = parked.into_iter().map(|(_, line)| line + "\n");
    written(&lines.collect::<String>())
}

async fn show(args: &ParkedOneArgs) -> Result<Exit, Trouble> {
    let store = open(&args.outbox).await?;
    let parked = one(&*store, args.number).await?;
    let none = || Trouble::refused(format!("no event {} is parked", args.number));
    let parked = parked.ok_or_else(none)?;
    if args.outbox.json {
        return written(&format!("{:#}\n", record::whole_in_json(&parked)));
    }
    written(&record::whole(&parked))
}

async fn put(args: &ParkedManyArgs, discarded: Option<&str>) -> Result<Exit, Trouble> {
    let store = open(&args.outbox).await?;
    let (chosen, mut missing) = chosen(args, &*store).await?;
    let mut done = 0;
    if !args.dry_run {
        let progress = Progress::new(!args.outbox.json);
        for batch in chosen.chunks(BATCH) {
            let numbers = batch.iter().map(|(number, _)| *number).collect();
            done += match discarded {
                None => store.unpark(numbers).await?,
                Some(_) => store.discard(numbers).await?,
            };
            for (_, line) in batch.iter().filter(|_| discarded.is_some()) {
                let reason = discarded.unwrap_or_default();
                output::note(&output::plain(&format!(
                    "discarded, since {reason}: {line}"
                )));
            }
            progress.at(done, Some(chosen.len()));
        }
        // Somebody else may have been faster.
        missing += chosen.len().saturating_sub(done);
    }
    let word = match discarded {
        None => "requeued",
        Some(_) => "discarded",
    };
    if args.outbox.json {
        let numbers: Vec<i64> = chosen.iter().map(|(number, _)| *number).collect();
        let json = json!({ "numbers": numbers, word: done, "dry_run": args.dry_run });
        written(&format!("{json:#}\n"))?;
    } else if args.dry_run {
        written(&format!("{} would be {word}\n", chosen.len()))?;
    } else {
        written(&format!("{done} {word}\n"))?;
    }
    if args.all && chosen.len() >= args.max as usize {
        output::warning(&format!("--max {} is reached: there may be more", args.max));
    }
    if missing == 0 {
        return Ok(Exit::Success);
    }
    output::warning(&format!("{missing} were not parked"));
    Ok(Exit::REFUSED)
}

/// Those that are parked of what was typed, each with its line, and how many are not.
async fn chosen(
    args: &ParkedManyArgs,
    store: &dyn EventStore,
) -> Result<(Vec<(i64, String)>, usize), Trouble> {
    let max = args.max as usize;
    if args.all {
        return Ok((page_by_page(store, 0, max, record::line).await?, 0));
    }
    let numbers: BTreeSet<i64> = args.numbers.iter().copied().collect();
    if numbers.len() > max {
        let line = format!("{} numbers are more than --max {max}", numbers.len());
        return Err(Trouble::usage(line));
    }
    let mut found = Vec::new();
    for number in &numbers {
        let parked = one(store, *number).await?;
        found.extend(parked.map(|parked| (*number, record::line(&parked))));
    }
    let missing = numbers.len() - found.len();
    Ok((found, missing))
}

async fn one(store: &dyn EventStore, number: i64) -> Result<Option<ParkedEvent>, Trouble> {
    let found = store.parked(number - 1, 1).await?;
    Ok(found.into_iter().find(|parked| parked.number == number))
}

/// What is to be said of each, with its number: payloads are not kept.
async fn page_by_page<T>(
    store: &dyn EventStore,
    after: i64,
    max: usize,
    say: impl Fn(&ParkedEvent) -> T,
) -> Result<Vec<(i64, T)>, Trouble> {
    let mut said: Vec<(i64, T)> = Vec::new();
    while said.len() < max {
        let page = BATCH.min(max - said.len());
        let last = said.last().map_or(after, |(number, _)| *number);
        let parked = store.parked(last, page).await?;
        let ended = parked.len() < page;
        said.extend(parked.iter().map(|parked| (parked.number, say(parked))));
        if ended {
            break;
        }
    }
    Ok(said)
}
