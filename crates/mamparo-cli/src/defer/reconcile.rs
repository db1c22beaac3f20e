//! `mamparo reconcile`.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock;
use mamparo_durable::backend::Backend;
use mamparo_durable::engine::Engine;
use mamparo_durable::handler::Cycle;
use mamparo_durable::machine::Patience;
use mamparo_durable::policy::Policies;
use serde_json::json;

use super::policy::{load, policies};
use super::tell::Tells;
use super::trouble::{Trouble, ended};
use super::tx::written;
use crate::args::ReconcileArgs;
use crate::exit::Exit;
use crate::output::Progress;

/// Runs `mamparo reconcile`.
pub(crate) async fn reconcile(args: ReconcileArgs) -> Exit {
    ended(mend(&args).await)
}

/// Brings everything that is stuck back on its way. The engine does the same, all the time.
async fn mend(args: &ReconcileArgs) -> Result<Exit, Trouble> {
    let agreed = match args.policy.is_empty() {
        true => Policies::default(),
        false => policies(&load(&args.policy)?)?,
    };
    let backend = args.store.store.open().await?;
    let began = clock::now();
    let mut mended = 0;
    let progress = Progress::new(!args.store.json);
    let mut last = Cycle::default();
    loop {
        // What this run has mended is younger than the run, and not taken up again.
        let engine = engine(args, &backend, &agreed, began.elapsed())?;
        last = engine.reconcile(last).await?;
        mended += last.mended;
        // A cycle has a limit; one that mends nothing has nothing more to mend.
        if last.mended == 0 {
            break;
        }
        progress.at(mended, None);
    }
    drop(progress);
    // Each cycle finds again what the ones before did not mend.
    let (found, failed, dead) = (mended + last.found, last.failed, last.dead);
    let exit = if failed == 0 {
        Exit::Success
    } else {
        Exit::NoAnswer
    };
    if args.store.json {
        let json =
            json!({ "found": found, "mended": mended, "failed": failed, "dead_letters": dead });
        written(&format!("{json:#}\n"))?;
    } else {
        written(&format!(
            "{found} stuck, {mended} mended, {failed} failed; {dead} dead letters\n"
        ))?;
    }
    Ok(exit)
}

/// One that mends what has been as it is since `ran` before the patience asked for.
fn engine(
    args: &ReconcileArgs,
    backend: &Backend,
    agreed: &Policies,
    ran: Duration,
) -> Result<Engine, Trouble> {
    let stuck = args.patience.0.saturating_add(ran);
    let patience = Patience {
        scheduling: stuck,
        scheduled: stuck,
        sending: stuck,
        in_flight: args.answer_within.0.saturating_add(ran),
    };
    let listener = Arc::new(Tells {
        json: args.store.json,
    });
    let engine = Engine::builder(backend.clone())
        .policies(agreed.clone())
        .patience(patience)
        .listener(listener);
    engine
        .build()
        .map_err(|error| Trouble::usage(error.to_string()))
}
