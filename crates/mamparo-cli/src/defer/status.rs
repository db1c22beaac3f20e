//! `mamparo engine status`.

use std::time::Duration;

use mamparo_durable::engine::{Engine, Status};
use serde_json::{Value, json};

use super::record::instant;
use super::trouble::{Trouble, ended};
use super::tx::written;
use crate::args::StatusArgs;
use crate::exit::Exit;
use crate::output;

/// Runs `mamparo engine status`.
pub(crate) async fn status(args: StatusArgs) -> Exit {
    ended(show(&args).await)
}

async fn show(args: &StatusArgs) -> Result<Exit, Trouble> {
    let engine = Engine::builder(args.store.store.open().await?).build();
    let engine = engine.map_err(|error| Trouble::usage(error.to_string()))?;
    loop {
        let status = engine.status().await?;
        let text = match (args.store.json, args.watch) {
            // A line each, for a program that reads along.
            (true, Some(_)) => format!("{}\n", of(&status)),
            (true, None) => format!("{:#}\n", of(&status)),
            (false, _) => text(&status),
        };
        if args.watch.is_some() && !args.store.json {
            output::clear();
        }
        let exit = written(&text)?;
        let Some(every) = args.watch.filter(|_| exit == Exit::Success) else {
            return Ok(exit);
        };
        tokio::select! {
            () = tokio::time::sleep(every.0) => {}
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Success),
        }
    }
}

fn of(status: &Status) -> Value {
    let counts = status.census.counts.iter().map(|count| {
        json!({
            "state": count.state.as_str(),
            "attempt": count.attempt,
            "transactions": count.transactions,
        })
    });
    let queues = status.queues.iter().map(|(name, depth)| {
        let depth = json!({
            "ready": depth.ready,
            "later": depth.later,
            "taken": depth.taken,
            "dead": depth.dead,
        });
        (name.as_str().to_owned(), depth)
    });
    json!({
        "at": instant(status.now),
        "transactions": counts.collect::<Vec<_>>(),
        "oldest_seconds": status.oldest().map(|age| age.as_secs_f64()),
        "overdue": status.census.overdue,
        "lag_seconds": status.lag().as_secs_f64(),
        "queues": queues.collect::<serde_json::Map<_, _>>(),
        "dead_letters": status.dead(),
    })
}

fn text(status: &Status) -> String {
    let mut counts = comfy_table::Table::new();
    counts.load_style(comfy_table::presets::NOTHING);
    counts.set_header(["state", "attempt", "transactions"]);
    for count in &status.census.counts {
        let (state, attempt) = (count.state.as_str(), count.attempt.to_string());
        counts.add_row([state, &attempt, &count.transactions.to_string()]);
    }
    let mut queues = comfy_table::Table::new();
    queues.load_style(comfy_table::presets::NOTHING);
    queues.set_header(["queue", "ready", "later", "taken", "dead"]);
    for (name, depth) in &status.queues {
        let numbers = [depth.ready, depth.later, depth.taken, depth.dead];
        let numbers = numbers.map(|number| number.to_string());
        queues.add_row(std::iter::once(name.as_str().to_owned()).chain(numbers));
    }
    let oldest = status.oldest().map_or_else(|| "none".to_owned(), short);
    let (overdue, lag) = (status.census.overdue, short(status.lag()));
    format!("{counts}\n\n{queues}\n\noldest {oldest}, {overdue} overdue, lag {lag}\n")
}

/// A duration, without what nobody looks at.
fn short(time: Duration) -> String {
    let millis = if time < Duration::from_secs(10) {
        1
    } else {
        1_000
    };
    let rounded = time.as_millis() / millis * millis;
    let rounded = Duration::from_millis(u64::try_from(rounded).unwrap_or(u64::MAX));
    humantime::format_duration(rounded).to_string()
}
