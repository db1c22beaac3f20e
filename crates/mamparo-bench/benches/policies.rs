//! What policy files cost: to load them, to load them again while calls are made, and to keep them in memory.
//!
//! docs/benchmarks.md says how it measures and how to read it.

#[path = "report/cpu.rs"]
mod cpu;

use std::alloc::System;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use bytes::Bytes;
use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};
use http::{Request, Response};
use http_body_util::Full;
use mamparo::policy::Policies;
use mamparo_core::{BoxError, clock};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::runtime::Builder;
use tower::util::service_fn;
use tower::{Service, ServiceBuilder, ServiceExt};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// As many dependencies as are loaded and loaded again.
const MANY: usize = 1_000;

/// As many as are kept in memory.
const VERY_MANY: usize = 10_000;

/// As many of them stand in one file, which is bounded.
const IN_A_FILE: usize = 1_000;

/// How often each time is taken; the middle one counts.
const TIMES: usize = 21;

type Body = Full<Bytes>;

fn main() -> Result<(), BoxError> {
    let mut table = Table::new();
    table
        .load_style(ASCII_MARKDOWN)
        .set_header(["policies", "figure"]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    // Before anything else has left room in the heap.
    for (what, figure) in memory()?.into_iter().chain(times()?).chain(pauses()?) {
        table.add_row([what, &figure]);
    }
    show(&table);
    Ok(())
}

#[expect(
    clippy::print_stdout,
    reason = "the table is what the benchmark is run for"
)]
fn show(table: &Table) {
    println!("\n{table}\n");
}

type Rows = Vec<(&'static str, String)>;

/// What many dependencies hold while nobody calls them, and once each was called.
fn memory() -> Result<Rows, BoxError> {
    let files = Files::of(VERY_MANY)?;
    files.write(2_000)?;
    let (heap, resident) = (Region::new(ALLOCATOR), resident());
    let policies = files.load()?;
    let loaded = (live(&heap), self::resident() - resident);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let services = services(&policies)?;
    runtime.block_on(async {
        for service in &services {
            call(service).await?;
        }
        Ok::<_, BoxError>(())
    })?;
    let called = live(&heap);
    drop(services);
    Ok(vec![
        ("10 000 dependencies, on the heap", mebibytes(loaded.0)),
        ("10 000 dependencies, resident", mebibytes(loaded.1)),
        (
            "10 000 dependencies and a service of each, called once, on the heap",
            mebibytes(called),
        ),
    ])
}

/// How much of a processor's time it takes to load them, and to load them again.
fn times() -> Result<Rows, BoxError> {
    let files = Files::of(MANY)?;
    files.write(2_000)?;
    let load = middle(|_| Ok(()), || files.load().map(drop))?;
    let policies = files.load()?;
    let reload = || Ok(policies.reload().map(drop)?);
    let nothing = middle(|_| Ok(()), reload)?;
    let all = middle(|time| files.write(1_000 + time), reload)?;
    Ok(vec![
        (
            "one dependency of 1 000, read, checked and built",
            micros(load / MANY as u32),
        ),
        ("1 000 dependencies loaded", millis(load)),
        ("1 000 loaded again, nothing changed", millis(nothing)),
        ("1 000 loaded again, each changed", millis(all)),
    ])
}

/// How long a thread that calls all dependencies in turn waits for one call at most, while they are loaded again: in the least
/// disturbed of the runs, since another process may take a processor away in any of them.
fn pauses() -> Result<Rows, BoxError> {
    let files = Files::of(MANY)?;
    files.write(2_000)?;
    let policies = files.load()?;
    let services = services(&policies)?;
    let (mut still, mut reloading) = (Duration::MAX, Duration::MAX);
    for time in 0..TIMES {
        let (took, ()) = while_called(&services, || {
            thread::sleep(Duration::from_millis(20));
            Ok(())
        })?;
        still = still.min(took);
        files.write(1_000 + time)?;
        let (took, ()) = while_called(&services, || Ok(policies.reload().map(drop)?))?;
        reloading = reloading.min(took);
    }
    Ok(vec![
        ("the longest call meanwhile", micros(reloading)),
        ("the longest call while nothing is loaded", micros(still)),
    ])
}

/// Does something while another thread calls; returns its longest call.
fn while_called<S, T>(
    services: &[S],
    work: impl FnOnce() -> Result<T, BoxError>,
) -> Result<(Duration, T), BoxError>
where
    S: Service<Request<Body>, Error = BoxError, Future: Send> + Clone + Send + Sync,
{
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let caller = scope.spawn(|| -> Result<Duration, BoxError> {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(longest_call(services, &over))
        });
        let done = work();
        thread::sleep(Duration::from_millis(5));
        over.store(true, Ordering::Relaxed);
        let longest = caller.join().map_err(|_| "the caller panicked")??;
        Ok((longest, done?))
    })
}

/// Calls all of them in turn until it is over.
async fn longest_call<S>(services: &[S], over: &AtomicBool) -> Result<Duration, BoxError>
where
    S: Service<Request<Body>, Error = BoxError> + Clone,
{
    let mut longest = Duration::ZERO;
    for service in services.iter().cycle() {
        let before = clock::now();
        call(service).await?;
        longest = longest.max(before.elapsed());
        if over.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(longest)
}

fn services(
    policies: &Policies,
) -> Result<
    Vec<impl Service<Request<Body>, Error = BoxError, Future: Send> + Clone + Send + Sync + use<>>,
    BoxError,
> {
    let names: Vec<_> = policies.iter().map(|(name, _)| name.to_owned()).collect();
    let mut services = Vec::new();
    for name in names {
        let stack = policies.dependency(&name)?.http()?;
        services.push(ServiceBuilder::new().layer(stack).service(service_fn(
            async |_: Request<_>| Ok::<_, Infallible>(Response::new(Body::default())),
        )));
    }
    Ok(services)
}

async fn call<S>(service: &S) -> Result<(), BoxError>
where
    S: Service<Request<Body>, Error = BoxError> + Clone,
{
    let request = Request::new(Body::default());
    service.clone().oneshot(request).await.map(drop)
}

/// Files of so many dependencies.
struct Files {
    paths: Vec<PathBuf>,
    dependencies: usize,
}

impl Files {
    fn of(dependencies: usize) -> Result<Self, BoxError> {
        let folder = PathBuf::from(concat!(env!("CARGO_TARGET_TMPDIR"), "/policies"));
        fs::create_dir_all(&folder)?;
        let files = 0..dependencies.div_ceil(IN_A_FILE);
        Ok(Self {
            paths: files
                .map(|file| folder.join(format!("{file}.toml")))
                .collect(),
            dependencies,
        })
    }

    /// Writes all of them, with a deadline of so many milliseconds.
    fn write(&self, deadline: usize) -> Result<(), BoxError> {
        for (file, path) in self.paths.iter().enumerate() {
            let mut text = String::new();
            if file == 0 {
                let retry = "retry = { max_attempts = 3, backoff = { base = \"100ms\", jitter = \"full\" } }";
                write!(text, "[profile.internal]\n{retry}\n")?;
            }
            let first = file * IN_A_FILE;
            for number in first..self.dependencies.min(first + IN_A_FILE) {
                write!(
                    text,
                    r#"
[dependency.service-{number}]
profile = "internal"
url = "http://service-{number}:8080"
deadline = "{deadline}ms"
breaker = {{ observes = "attempts", failure_rate = 0.5 }}
bulkhead = {{ max_concurrent = 20 }}
"#
                )?;
            }
            fs::write(path, text)?;
        }
        Ok(())
    }

    fn load(&self) -> Result<Policies, BoxError> {
        let loader = self
            .paths
            .iter()
            .fold(Policies::loader(), |it, path| it.file(path));
        Ok(loader.load()?)
    }
}

/// The middle one of the times that some work takes of a processor, each after its own preparation.
fn middle(
    prepare: impl Fn(usize) -> Result<(), BoxError>,
    work: impl Fn() -> Result<(), BoxError>,
) -> Result<Duration, BoxError> {
    let mut times = Vec::new();
    for time in 0..TIMES {
        prepare(time)?;
        let before = cpu::time();
        work()?;
        times.push(cpu::time() - before);
    }
    times.sort();
    Ok(times[TIMES / 2])
}

/// Bytes that were allocated since, and are still.
fn live(since: &Region<'_, System>) -> isize {
    let change = since.change();
    change.bytes_allocated as isize - change.bytes_deallocated as isize
}

/// Bytes of this process in memory; unknown, and so none, elsewhere than on Linux.
fn resident() -> isize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<isize>().ok());
    kibibytes.unwrap_or_default() << 10
}

fn mebibytes(bytes: isize) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}
