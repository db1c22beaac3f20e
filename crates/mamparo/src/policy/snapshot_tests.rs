//! What a snapshot says, against what was done to a stack.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use http::{Request, Response};
use mamparo_core::breaker::{BreakerCause, BreakerState};
use mamparo_core::vitals::Monitored;
use proptest::prelude::*;
use serde_json::Value;
use tower::{ServiceBuilder, ServiceExt};

use super::snapshot::{Dependency, VERSION};
use super::*;
use crate::stack::Stack;

fn load(document: &str) -> Policies {
    let loader = Policies::loader().text("policies.toml", document, Format::Toml);
    loader.load().unwrap()
}

fn catalog(settings: &str) -> Policies {
    load(&format!("[dependency.catalog]\n{settings}\n"))
}

fn read(policies: &Policies) -> Dependency {
    policies.dependency("catalog").unwrap().snapshot()
}

/// Sends one request after the other; the peer answers each send with the next of these statuses, then with 200.
async fn send(stack: Stack, requests: usize, statuses: &'static [u16]) {
    let sent = Arc::new(AtomicU32::new(0));
    let peer = move |_: Request<_>| {
        let at = sent.fetch_add(1, SeqCst) as usize;
        let status = statuses.get(at).copied().unwrap_or(200);
        async move {
            let answer = Response::builder().status(status);
            Ok::<_, Infallible>(answer.body(String::new()).unwrap())
        }
    };
    let service = ServiceBuilder::new().layer(stack).service_fn(peer);
    for _ in 0..requests {
        let request = Request::new(String::new());
        let answer = service.clone().oneshot(request).await;
        drop(answer);
    }
}

fn stack(policies: &Policies) -> Stack {
    policies.dependency("catalog").unwrap().http().unwrap()
}

#[tokio::test(start_paused = true)]
async fn operations_attempts_and_recoveries_are_counted_apart() {
    let policies = catalog("retry = { max_attempts = 3 }\nbreaker = \"off\"");
    // The first is sent three times and succeeds, the second three times and fails, the others once.
    send(stack(&policies), 10, &[503, 503, 200, 503, 503, 503]).await;
    let traffic = read(&policies).traffic;
    assert_eq!((traffic.operations, traffic.attempts), (10, 14));
    assert_eq!(
        (traffic.resent_operations, traffic.recovered_operations),
        (2, 1)
    );
    assert_eq!(
        (traffic.amplification, traffic.recovery_rate),
        (Some(1.4), Some(0.5))
    );
    assert_eq!((traffic.unsent_operations, traffic.late_operations), (0, 0));
    assert_eq!(read(&policies).budget.consumed, 4);
}

#[tokio::test(start_paused = true)]
async fn a_hedge_counts_as_the_retry_does() {
    let policies = catalog("hedge = { max_attempts = 2, delay = \"50ms\" }");
    let sent = Arc::new(AtomicU32::new(0));
    let peer = move |_: Request<_>| {
        // The first is slow, so that its hedge answers.
        let slow = sent.fetch_add(1, SeqCst) == 0;
        async move {
            tokio::time::sleep(Duration::from_millis(if slow { 500 } else { 1 })).await;
            Ok::<_, Infallible>(Response::new(String::new()))
        }
    };
    let service = ServiceBuilder::new()
        .layer(stack(&policies))
        .service_fn(peer);
    service.oneshot(Request::new(String::new())).await.unwrap();
    let traffic = read(&policies).traffic;
    assert_eq!((traffic.operations, traffic.attempts), (1, 2));
    assert_eq!(
        (traffic.resent_operations, traffic.recovered_operations),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn what_an_open_breaker_refuses_is_no_attempt() {
    let policies = catalog("");
    let breaker = stack(&policies).breaker_handle().unwrap();
    breaker.force_open();
    send(stack(&policies), 3, &[]).await;
    let traffic = read(&policies).traffic;
    assert_eq!((traffic.operations, traffic.unsent_operations), (3, 3));
    assert_eq!((traffic.attempts, traffic.amplification), (0, Some(0.0)));

    let hedged = catalog("hedge = { max_attempts = 2, delay = \"50ms\" }");
    stack(&hedged).breaker_handle().unwrap().force_open();
    send(stack(&hedged), 3, &[]).await;
    let traffic = read(&hedged).traffic;
    assert_eq!((traffic.operations, traffic.unsent_operations), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_resend_that_is_refused_on_our_side_makes_no_resent_operation() {
    // The first failure opens it, and the resend meets it open.
    let policies = catalog("breaker = { consecutive_failures = 1 }");
    send(stack(&policies), 1, &[503]).await;
    let read = read(&policies);
    assert_eq!(
        (read.traffic.attempts, read.traffic.resent_operations),
        (1, 0)
    );
    assert_eq!(
        (read.traffic.unsent_operations, read.budget.consumed),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_breaker_says_why_and_since_when_it_is_in_its_state() {
    let policies = catalog(
        "retry = { max_attempts = 1 }\nbreaker = { failure_rate = 0.5, minimum_calls = 5, consecutive_failures = 9 }",
    );
    tokio::time::advance(Duration::from_secs(60)).await;
    let never = policies.snapshot();
    let breaker = never.dependencies["catalog"].breakers.attempts.as_ref();
    let breaker = breaker.unwrap();
    assert_eq!((breaker.state, breaker.cause), (BreakerState::Closed, None));
    let lasts = never.at.duration_since(breaker.since).unwrap();
    assert!(lasts >= Duration::from_secs(60));

    send(stack(&policies), 5, &[503; 5]).await;
    tokio::time::advance(Duration::from_secs(2)).await;
    let open = policies.snapshot();
    let breaker = open.dependencies["catalog"].breakers.attempts.as_ref();
    let breaker = breaker.unwrap();
    let why = Some(BreakerCause::FailureRate);
    assert_eq!((breaker.state, breaker.cause), (BreakerState::Open, why));
    let lasts = open.at.duration_since(breaker.since).unwrap();
    assert_eq!(lasts.as_secs(), 2);
    assert_eq!(
        (breaker.calls, breaker.failures, breaker.openings),
        (5, 5, 1)
    );
    assert!(
        breaker
            .retry_after
            .is_some_and(|wait| wait <= Duration::from_secs(4))
    );

    let handle = stack(&policies).breaker_handle().unwrap();
    handle.reset();
    let breaker = read(&policies).breakers.attempts.unwrap();
    let why = Some(BreakerCause::Operator);
    assert_eq!((breaker.state, breaker.cause), (BreakerState::Closed, why));
}

#[tokio::test(start_paused = true)]
async fn what_ends_late_is_counted_without_an_observer() {
    let policies = catalog("deadline = \"100ms\"");
    let peer = |_: Request<_>| async {
        // Blocks its thread for longer than the deadline, then waits on.
        tokio::task::yield_now().await;
        tokio::time::advance(Duration::from_millis(200)).await;
        std::future::pending::<()>().await;
        Ok::<_, Infallible>(Response::new(String::new()))
    };
    let service = ServiceBuilder::new()
        .layer(stack(&policies))
        .service_fn(peer);
    assert!(service.oneshot(Request::new(String::new())).await.is_err());
    assert_eq!(read(&policies).traffic.late_operations, 1);
}

#[tokio::test(start_paused = true)]
async fn each_layer_says_how_full_it_is_and_nothing_where_it_is_off() {
    let policies = catalog(
        "bulkhead = { max_concurrent = 3 }\nrate_limit = { count = 10, burst = 4 }\nload_shed = { max_in_flight = 9 }",
    );
    let service = ServiceBuilder::new()
        .layer(stack(&policies))
        .service_fn(|_: Request<_>| async {
            std::future::pending::<()>().await;
            Ok::<_, Infallible>(Response::new(String::new()))
        });
    let calls: Vec<_> = (0..4)
        .map(|_| tokio::spawn(service.clone().oneshot(Request::new(String::new()))))
        .collect();
    tokio::task::yield_now().await;
    let now = read(&policies);
    let bulkhead = now.bulkhead.unwrap();
    assert_eq!(
        (bulkhead.in_flight, bulkhead.waiting, bulkhead.limit),
        (3, 1, 3)
    );
    let rate = now.rate_limit.unwrap();
    assert_eq!(
        (rate.count, rate.burst, rate.available, rate.waiting),
        (10, 4, 1, 0)
    );
    assert_eq!(now.load_shed.unwrap().in_flight, Some(4));
    calls.iter().for_each(tokio::task::JoinHandle::abort);

    let off = catalog("bulkhead = \"off\"\nbreaker = \"off\"");
    let off = serde_json::to_value(off.snapshot()).unwrap();
    let off = &off["dependencies"]["catalog"];
    for layer in [
        "/bulkhead",
        "/rate_limit",
        "/load_shed",
        "/breakers/attempts",
        "/breakers/operations",
    ] {
        assert_eq!(off.pointer(layer), Some(&Value::Null), "{layer}");
    }
}

#[test]
fn a_snapshot_is_of_what_was_loaded_last_and_its_counts_go_on() {
    let path = std::env::temp_dir().join(format!("mamparo-snapshot-{}.toml", std::process::id()));
    std::fs::write(&path, "[dependency.catalog]\n").unwrap();
    let policies = Policies::loader().file(&path).load().unwrap();
    let budget = stack(&policies).budget().clone();
    drop(budget.deposit(None));
    std::fs::write(
        &path,
        "[dependency.catalog]\nbudget = { ratio = 0.5 }\n[dependency.psp]\nprotocol = \"grpc\"\n",
    )
    .unwrap();
    policies.reload().unwrap();
    std::fs::remove_file(&path).unwrap();
    let snapshot = policies.snapshot();
    assert_eq!(snapshot.dependencies["catalog"].traffic.operations, 1);
    assert_eq!(snapshot.dependencies["psp"].protocol, "grpc");
}

/// A field that is renamed or goes needs another version: whoever reads it would not know.
#[test]
fn the_fields_of_this_version_stay() {
    let policies = load(
        "[service]\nname = \"shop\"\n[dependency.catalog]\nrate_limit = { count = 10 }\nload_shed = { max_in_flight = 9 }",
    );
    let mut json = serde_json::to_value(policies.snapshot()).unwrap();
    assert_eq!(json["version"], VERSION);
    assert_eq!(json["service"], "shop");
    let names = |value: &Value| {
        let names = value.as_object().unwrap().keys();
        names.map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    let catalog = json["dependencies"]["catalog"].take();
    assert_eq!(names(&json), "at dependencies service version");
    assert_eq!(
        names(&catalog),
        "breakers budget bulkhead load_shed protocol rate_limit traffic"
    );
    assert_eq!(
        names(&catalog["breakers"]["attempts"]),
        "admitted calls cancelled cause consecutive_failures failure_rate failures ignored late minimum_calls openings \
         probes retry_after_ms since slow slow_rate state",
    );
    assert_eq!(names(&catalog["bulkhead"]), "in_flight limit waiting");
    assert_eq!(
        names(&catalog["rate_limit"]),
        "available burst count period_ms retry_after_ms waiting"
    );
    assert_eq!(names(&catalog["load_shed"]), "in_flight overloaded");
    assert_eq!(names(&catalog["budget"]), "allowed consumed tokens");
    assert_eq!(
        names(&catalog["traffic"]),
        "amplification attempts late_operations operations recovered_operations recovery_rate resent_operations \
         unsent_operations",
    );
    assert_eq!(catalog["rate_limit"]["period_ms"], 1000);
    let at = json["at"].as_str().unwrap();
    assert!(humantime::parse_rfc3339(at).is_ok(), "{at}");
}

proptest! {
    /// Whatever the peer answers: attempts are what it saw, and no share is above the whole.
    #[test]
    fn the_counts_agree_with_what_the_peer_saw(failures in proptest::collection::vec(any::<bool>(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (policies, seen) = runtime.block_on(async {
            let policies = catalog("breaker = \"off\"");
            let seen = Arc::new(AtomicU32::new(0));
            let (count, answers) = (Arc::clone(&seen), failures.clone());
            let peer = move |_: Request<_>| {
                let at = count.fetch_add(1, SeqCst) as usize;
                let status = if answers.get(at) == Some(&true) { 503 } else { 200 };
                async move {
                    let answer = Response::builder().status(status);
                    Ok::<_, Infallible>(answer.body(String::new()).unwrap())
                }
            };
            let service = ServiceBuilder::new().layer(stack(&policies)).service_fn(peer);
            for _ in 0..20 {
                service.clone().oneshot(Request::new(String::new())).await.unwrap();
            }
            (policies, seen.load(SeqCst))
        });
        let traffic = read(&policies).traffic;
        prop_assert_eq!(traffic.operations, 20);
        prop_assert_eq!(traffic.attempts, u64::from(seen));
        prop_assert!(traffic.recovered_operations <= traffic.resent_operations);
        prop_assert!(traffic.resent_operations <= traffic.operations);
        prop_assert_eq!(traffic.recovery_rate.is_none(), traffic.resent_operations == 0);
    }
}

#[test]
fn whoever_collects_figures_hears_of_each_dependency_as_it_is_now() {
    let policies = load(
        "[dependency.catalog]\nbulkhead = { max_concurrent = 3 }\n[dependency.psp]\nbulkhead = \"off\"\nbreaker = \"off\"\n",
    );
    stack(&policies).breaker_handle().unwrap().force_open();
    let mut all = Vec::new();
    policies.each(&mut |vitals| {
        let limit = vitals.places.map(|places| places.limit);
        let name = vitals.dependency.as_str();
        all.push((name, vitals.breaker, limit, vitals.budget.is_some()));
    });
    let open = Some(BreakerState::ForcedOpen);
    assert_eq!(
        all,
        [("catalog", open, Some(3), true), ("psp", None, None, true)]
    );
}
