//! The engine as a process.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use mamparo::policy::Policies;
use mamparo::rate_limit::RateLimitPolicy;
use mamparo_core::InvalidSetting;
use mamparo_durable::backend::Backend;
use mamparo_durable::engine::{Engine, Running};
use mamparo_durable::handler::Listeners;
use mamparo_durable::machine::Patience;
use mamparo_telemetry::durable::{EngineWatch, Traced};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::gate::Breakers;
use super::metrics::{Served, Told};
use super::policy::{load, policies};
use super::send::Senders;
use super::tell::Tells;
use super::trouble::{Trouble, ended};
use crate::args::{Rate, RunArgs};
use crate::exit::Exit;
use crate::output;
use crate::policies::{Finding, framed};
use crate::telemetry::Stream;

/// How long a request waits for its turn under --rate before it is given back.
const TURN: Duration = Duration::from_secs(60);

/// Runs `mamparo engine run`.
pub(crate) async fn run(args: RunArgs) -> Exit {
    ended(serve(&args).await)
}

async fn serve(args: &RunArgs) -> Result<Exit, Trouble> {
    let mut files = load(&args.policy)?;
    let backend = args.store.store.work(args.poll.0).await?;
    let mut signals = Signals::new()?;
    let told = told(args, &files).await?;
    let served = told.served.as_ref();
    let mut started = Ready::new(args, &backend, &files, &told)?.start(&told)?;
    say(args, "running");
    if let Some(Served { address, .. }) = served {
        say(args, &format!("metrics at http://{address}/metrics"));
    }
    loop {
        tokio::select! {
            ended = started.running.ended() => {
                let why = ended.err().map_or_else(String::new, |error| error.to_string());
                return Err(Trouble::away(format!("the engine ended: {why}")));
            }
            _ = signals.stop.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.reload.recv() => {
                let anew = reloaded(args, &files).and_then(|anew| {
                    let ready = Ready::new(args, &backend, &anew, &told)?;
                    Ok((anew, ready))
                });
                if let Some(served) = served {
                    served.reloaded(anew.as_ref().err().map(|refused| refused.line.as_str()));
                }
                match anew {
                    Ok((anew, ready)) => {
                        started.stop().await?;
                        started = ready.start(&told)?;
                        files = anew;
                        say(args, "reloaded");
                    }
                    Err(Trouble { line, .. }) => {
                        output::warning(&format!("{line}; nothing changes"));
                    }
                }
            }
        }
    }
    say(args, "stopping");
    let stopped = started.stop().await;
    if let Some(spans) = &told.spans
        && let Err(why) = spans.finish().await
    {
        output::warning(&format!("the last spans were not exported: {why}"));
    }
    stopped?;
    say(args, "stopped");
    Ok(Exit::Success)
}

async fn told(args: &RunArgs, files: &Policies) -> Result<Told, Trouble> {
    let unusable = |error| Trouble::usage(format!("--otlp can't be used: {error}"));
    let spans = args.otlp.as_deref();
    let spans = spans.map(|url| Stream::new("mamparo-engine", url).map_err(unusable));
    Ok(Told {
        served: match args.metrics {
            Some(address) => Some(Served::at(address, files).await?),
            None => None,
        },
        spans: spans.transpose()?,
    })
}

/// An engine that runs, and what looks at its store.
struct Started {
    running: Running,
    watch: Option<EngineWatch>,
}

impl Started {
    async fn stop(self) -> Result<(), Trouble> {
        let Self { running, watch } = self;
        let stopped = running.stop().await;
        // The next one is looked at by another.
        drop(watch);
        stopped.map_err(|error| Trouble::away(error.to_string()))
    }
}

/// Loads the files again, with all that the engine needs of them.
fn reloaded(args: &RunArgs, files: &Policies) -> Result<Policies, Trouble> {
    // Looked at before anything changes, since a breaker that is in use changes with its policy.
    let tried = load(&args.policy)?;
    policies(&tried)?;
    Senders::of(&tried, &HeaderMap::new(), &Told::default())?;
    files.reload().map_err(|refused| {
        for problem in refused.problems() {
            output::note(&framed(&Finding::from(problem)));
        }
        Trouble::refused("the policies are refused")
    })
}

/// All that can fail is made before the engine that runs is stopped for it.
struct Ready {
    engine: Engine,
    senders: Senders,
}

impl Ready {
    fn new(
        args: &RunArgs,
        backend: &Backend,
        files: &Policies,
        told: &Told,
    ) -> Result<Self, Trouble> {
        let mut headers = HeaderMap::new();
        for field in &args.headers {
            headers.append(field.name.clone(), field.value.clone());
        }
        Ok(Self {
            engine: engine(args, backend, files, told.served.as_ref())?,
            senders: Senders::of(files, &headers, told)?,
        })
    }

    fn start(self, told: &Told) -> Result<Started, Trouble> {
        let Self { engine, senders } = self;
        let served = told.served.as_ref();
        let watch = served.map(|served| served.watch(&engine)).transpose()?;
        let send = tower::service_fn(move |request| senders.clone().send(request));
        let mut send = Traced::new(send);
        if let Some(spans) = &told.spans {
            send = send.tracer_provider(spans.provider());
        }
        let running = engine.run(send);
        Ok(Started { running, watch })
    }
}

fn engine(
    args: &RunArgs,
    backend: &Backend,
    files: &Policies,
    served: Option<&Served>,
) -> Result<Engine, Trouble> {
    let refused = |error: InvalidSetting| Trouble::usage(error.to_string());
    let patience = Patience {
        in_flight: args.answer_within.0,
        ..Patience::default()
    };
    let json = args.store.json;
    let mut listeners = Listeners::default().and(Tells { json });
    if let Some(served) = served {
        listeners = listeners.and(served.metrics());
    }
    let mut builder = Engine::builder(backend.clone())
        .policies(policies(files)?)
        .gatekeeper(Breakers::of(files))
        .listener(Arc::new(listeners))
        .patience(patience)
        .requests(usize::try_from(args.concurrency).unwrap_or(usize::MAX))
        .look_again(args.poll.0)
        .reconcile_every(args.reconcile_every.0)
        .keep(args.keep.0)
        .drain(args.drain.0);
    if let Some(Rate { count, period }) = args.rate {
        // Evenly, as far as a store can be asked for it: no more at once than pass in 20 ms.
        let parts = (period.as_millis() / 20).max(1);
        let burst = u128::from(count).div_ceil(parts);
        let rate = RateLimitPolicy::per(period, count)
            .burst(u32::try_from(burst).unwrap_or(u32::MAX))
            .max_wait(TURN);
        builder = builder.rate(rate.build().map_err(refused)?);
    }
    builder.build().map_err(refused)
}

fn say(args: &RunArgs, what: &str) {
    if args.store.json {
        output::note(&serde_json::json!({ "engine": what }).to_string());
    } else {
        output::note(&format!("engine: {what}"));
    }
}

struct Signals {
    stop: Signal,
    interrupt: Signal,
    reload: Signal,
}

impl Signals {
    fn new() -> Result<Self, Trouble> {
        let listen = |kind| {
            let heard = signal(kind);
            heard.map_err(|error| Trouble::away(format!("no signals can be heard: {error}")))
        };
        Ok(Self {
            stop: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            reload: listen(SignalKind::hangup())?,
        })
    }
}
