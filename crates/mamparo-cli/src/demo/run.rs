//! The demonstration, from the first server to the last line.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use mamparo_core::{BoxError, clock};

use super::cast::Cast;
use super::deferred::transfer;
use super::figures::{late, rows};
use super::live::live;
use super::lost::payments;
use super::notes::Notes;
use super::plot::plot;
use super::pricing;
use super::proofs::proofs;
use super::protection::{self, protect};
use super::report::{Found, show};
use super::scenes::{price, services};
use super::shop::Shop;
use super::traffic::{Seen, drive};
use crate::args::DemoArgs;
use crate::exit::Exit;
use crate::output;
use crate::telemetry::Pipeline;

/// It takes about eight seconds; what takes longer than this is stuck.
const LIMIT: Duration = Duration::from_secs(60);

/// How long handlers are waited for that nobody waits for any more.
const OVER_WITHIN: Duration = Duration::from_secs(1);

/// Shows the layers at work.
pub(crate) async fn demo(args: DemoArgs) -> Exit {
    if let Some(at) = args.metrics {
        return live(at, args.well.0, args.amqp.as_deref())
            .await
            .unwrap_or_else(|error| {
                output::error(&format!("the demonstration could not be run: {error}"));
                Exit::NoAnswer
            });
    }
    // Before anything else: who typed a wrong name hears of it at once.
    let plot = match args.plot.as_deref().map(create).transpose() {
        Ok(file) => file,
        Err(why) => {
            output::error(&why);
            return Exit::Usage;
        }
    };
    let shown = tokio::time::timeout(LIMIT, run(args, plot)).await;
    match shown {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => {
            output::error(&format!("the demonstration could not be run: {error}"));
            Exit::NoAnswer
        }
        Err(_) => {
            output::error(&format!(
                "the demonstration is stuck: not over within {LIMIT:?}"
            ));
            Exit::OutOfTime
        }
    }
}

async fn run(args: DemoArgs, picture: Option<File>) -> Result<Exit, BoxError> {
    let began = clock::now();
    let telemetry = Pipeline::new("mamparo-demo", args.otlp)?;
    let notes = Notes::default();
    // Whoever waits for a second does so beside the others.
    let (seen, transfer) = tokio::try_join!(
        play(&telemetry, &notes, args.requests),
        transfer(&telemetry)
    )?;
    let payments = payments(&telemetry).await?;
    let protection = protect(&telemetry).await?;
    let elapsed = clock::now() - began;

    let kept = telemetry.kept();
    let (figures, sent) = telemetry.finish().await;
    let noted = notes.noted();
    let mut proofs = proofs(&noted, &seen, services(&kept), late(&figures));
    let quoted = price(&kept);
    proofs.extend(pricing::proofs(&noted, seen.quote, &seen.watched, quoted));
    proofs.extend([payments.proof(), transfer.proof()]);
    proofs.extend(protection::proofs(&protection));
    let drawn = picture.map_or(Ok(()), |mut file| {
        file.write_all(plot(&protection.breaker).as_bytes())
    });
    let found = Found {
        proofs,
        grpc: seen.watched,
        protection,
        dependencies: rows(&figures),
        requests: args.requests,
        elapsed_ms: elapsed.as_millis(),
    };
    if args.json {
        let mut json = serde_json::to_vec_pretty(&found)?;
        json.push(b'\n');
        output::all(&json)?;
    } else {
        show(&found, &kept, elapsed);
    }
    if let Err(why) = sent {
        output::warning(&why);
    }
    if let Err(why) = drawn {
        output::error(&format!("the picture could not be written: {why}"));
        return Ok(Exit::Unwritten);
    }
    let all = found.proofs.iter().all(|proof| proof.holds);
    Ok(if all {
        Exit::Success
    } else {
        Exit::FailedAnswer
    })
}

/// Opens the file of the picture.
fn create(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|error| format!("{} can't be written: {error}", path.display()))
}

/// Starts the servers, drives the traffic, and stops them again.
async fn play(telemetry: &Pipeline, notes: &Notes, requests: u32) -> Result<Seen, BoxError> {
    let cast = Cast::start(notes).await?;
    let shop = Shop::open(telemetry, &cast, notes).await?;
    let seen = drive(telemetry, &shop, &cast, requests).await?;
    let over = async {
        while !notes.noted().is_over() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    // The proofs say so where one still runs.
    drop(tokio::time::timeout(OVER_WITHIN, over).await);
    Ok(seen)
}
