//! `mamparo dlq --amqp`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mamparo::serve::termination;
use mamparo_rabbitmq::{DeadLetters, Letter, Selection, Settings};
use serde_json::{Value, json};

use crate::args::{
    DeadArgs, DeadOneArgs, DiscardArgs, DlqCommand, Filter, HeapArgs, Key, RequeueArgs,
};
use crate::defer::{Trouble, written};
use crate::exit::Exit;
use crate::output::{self, Progress};

/// Runs `mamparo dlq` on a RabbitMQ.
pub(crate) async fn dlq(command: &DlqCommand) -> Result<Exit, Trouble> {
    match command {
        DlqCommand::List(args) => list(args).await,
        DlqCommand::Show(args) => show(args).await,
        DlqCommand::Requeue(args) => put(args, None).await,
        DlqCommand::Discard(DiscardArgs { which, reason }) => put(which, Some(reason)).await,
    }
}

async fn list(args: &DeadArgs) -> Result<Exit, Trouble> {
    let queue = args.queue.as_deref().unwrap_or_default();
    let wanted = |letter: &Letter| args.filters.iter().all(|filter| holds(filter, letter));
    let selection = Selection {
        wanted: &wanted,
        ..Selection::first(args.max as usize)
    };
    let found = letters(&args.heap, queue)?.list(selection).await?;
    if args.heap.json {
        let all: Vec<Value> = found.iter().map(in_json).collect();
        return written(&format!("{:#}\n", json!({ "dead_letters": all })));
    }
    written(
        &found
            .iter()
            .map(|letter| line(letter) + "\n")
            .collect::<String>(),
    )
}

async fn show(args: &DeadOneArgs) -> Result<Exit, Trouble> {
    let number = args.number;
    let selection = Selection {
        wanted: &|letter| letter.number() as u64 == number,
        ..Selection::first(1)
    };
    let found = letters(&args.heap, &args.queue)?.list(selection).await?;
    let Some(letter) = found.first() else {
        return Err(Trouble::refused(format!(
            "there is no dead letter {number} of {}",
            args.queue
        )));
    };
    let body = String::from_utf8_lossy(letter.body());
    if args.heap.json {
        let mut json = in_json(letter);
        json["headers"] = letter.headers().into_iter().collect();
        json["body"] = body.into();
        return written(&format!("{json:#}\n"));
    }
    let mut text = line(letter) + "\n";
    for (name, value) in letter.headers() {
        text += &output::plain(&format!("  {name}: {value}"));
        text.push('\n');
    }
    written(&format!("{text}\n{}\n", output::plain_lines(&body)))
}

async fn put(args: &RequeueArgs, discarded: Option<&String>) -> Result<Exit, Trouble> {
    let letters = letters(&args.heap, &args.queue)?;
    let numbers = args.distinct()?;
    let chosen = |letter: &Letter| {
        let numbered = numbers.is_empty() || numbers.contains(&(letter.number() as u64));
        numbered && args.filters.iter().all(|filter| holds(filter, letter))
    };
    let so_far = AtomicUsize::new(0);
    let progress = Progress::new(!args.heap.json && !args.dry_run);
    let told_of_each = |letter: &Letter| {
        let done = so_far.fetch_add(1, Ordering::Relaxed) + 1;
        progress.at(done, Some(numbers.len()).filter(|many| *many > 0));
        if let Some(reason) = discarded.filter(|_| !args.dry_run) {
            output::note(&format!("discarded, since {reason}: {}", line(letter)));
        }
    };
    let selection = Selection {
        max: args.max as usize,
        pause: args
            .rate
            .map_or(Duration::ZERO, |rate| rate.period / rate.count),
        wanted: &chosen,
        done: &told_of_each,
    };
    let word = if discarded.is_some() {
        "discarded"
    } else {
        "requeued"
    };
    let done = if args.dry_run {
        letters.list(selection).await
    } else {
        let stop = termination().map_err(|error| Trouble::away(error.to_string()))?;
        match discarded {
            None => letters.requeue(selection, stop).await,
            Some(_) => letters.discard(selection, stop).await,
        }
    };
    drop(progress);
    let done = done.map_err(|error| {
        let so_far = so_far.load(Ordering::Relaxed);
        if so_far > 0 && !args.dry_run {
            output::warning(&format!("{so_far} {word} until then"));
        }
        Trouble::from(error)
    })?;
    if args.heap.json {
        let all: Vec<Value> = done.iter().map(in_json).collect();
        let json = json!({ "queue": args.queue, word: done.len(), "dead_letters": all, "dry_run": args.dry_run });
        written(&format!("{json:#}\n"))?;
    } else if args.dry_run {
        written(&format!("{} would be {word}\n", done.len()))?;
    } else {
        written(&format!("{} {word}\n", done.len()))?;
    }
    if numbers.is_empty() && done.len() >= args.max as usize {
        output::warning(&format!("--max {} is reached: there may be more", args.max));
    }
    let missing = numbers.len().saturating_sub(done.len());
    if missing == 0 {
        return Ok(Exit::Success);
    }
    output::warning(&format!(
        "{missing} were not there, or not chosen by the filters"
    ));
    Ok(Exit::REFUSED)
}

fn letters(heap: &HeapArgs, queue: &str) -> Result<DeadLetters, Trouble> {
    let usage = |error: mamparo_core::InvalidSetting| Trouble::usage(error.to_string());
    let url = heap.amqp.clone().unwrap_or_default();
    let settings = Settings::builder(url)
        .name("mamparo dlq")
        .build()
        .map_err(usage)?;
    DeadLetters::of(settings, queue).map_err(usage)
}

fn holds(Filter { key, text }: &Filter, letter: &Letter) -> bool {
    match key {
        Key::Id => letter.message_id() == Some(text),
        Key::Reason => letter.reason() == text,
        Key::Detail => letter.detail().contains(&**text),
        Key::Type => letter
            .properties()
            .kind()
            .as_ref()
            .is_some_and(|kind| kind.as_str() == text),
        Key::Header(name) => letter.headers().contains(&(name.clone(), text.clone())),
    }
}

fn line(letter: &Letter) -> String {
    let mut line = format!(
        "{:>5}  {}  {}  attempt {}  {}",
        letter.number(),
        letter.message_id().unwrap_or("-"),
        letter.reason(),
        letter.attempts(),
        letter.at(),
    );
    for (name, value) in [("owner", letter.owner()), ("runbook", letter.runbook())] {
        if !value.is_empty() {
            line += &format!("  {name} {value}");
        }
    }
    // What a stranger wrote stays in its line.
    output::plain(format!("{line}  {}", letter.detail()).trim_end())
}

fn in_json(letter: &Letter) -> Value {
    json!({
        "number": letter.number(),
        "message_id": letter.message_id(),
        "reason": letter.reason(),
        "detail": letter.detail(),
        "attempts": letter.attempts(),
        "at": letter.at(),
        "owner": letter.owner(),
        "runbook": letter.runbook(),
        "bytes": letter.body().len(),
    })
}
