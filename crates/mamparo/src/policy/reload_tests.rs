//! A file that changes while services are in use.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use mamparo_core::breaker::BreakerState;
use mamparo_core::{BoxError, Event, Observer, Rejection, What, clock};
use tower::{Service, ServiceBuilder, ServiceExt};

use super::*;
use crate::replay::ReplayBody;
use crate::stack::Stack;

type Answer = Response<String>;

/// A file, gone with the test.
struct File(PathBuf);

impl File {
    fn new(document: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, SeqCst));
        let name = format!("mamparo-reload-{process}-{number}.toml");
        let file = Self(std::env::temp_dir().join(name));
        file.write(document);
        file
    }

    fn write(&self, document: &str) {
        std::fs::write(&self.0, document).unwrap();
    }

    fn load(&self) -> Policies {
        Policies::loader().file(&self.0).load().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

fn catalog(settings: &str) -> String {
    format!("[dependency.catalog]\n{settings}\n")
}

fn stack(policies: &Policies) -> Stack {
    policies.dependency("catalog").unwrap().http().unwrap()
}

/// Around a peer that answers with what the deadline's header says, `after` so long.
fn client(
    stack: Stack,
    status: u16,
    after: Duration,
) -> impl Service<Request<String>, Response = Response<impl Sized>, Error = BoxError, Future: Send>
+ Clone
+ Send
+ Sync {
    let peer = move |request: Request<ReplayBody<String>>| async move {
        tokio::time::sleep(after).await;
        let told = request.headers().get("x-request-timeout-ms");
        let told = told.map_or("", |told| told.to_str().unwrap());
        let answer = Response::builder().status(status);
        Ok::<Answer, Infallible>(answer.header("told", told).body(String::new()).unwrap())
    };
    let transport = tower::service_fn(peer);
    ServiceBuilder::new().layer(stack).service(transport)
}

async fn call<S, B>(service: &S) -> Result<Response<B>, BoxError>
where
    S: Service<Request<String>, Response = Response<B>, Error = BoxError> + Clone,
{
    service.clone().oneshot(Request::new(String::new())).await
}

fn told<B>(answer: &Response<B>) -> u64 {
    let told = answer.headers()["told"].to_str().unwrap();
    told.parse().unwrap()
}

fn is_open(error: &BoxError) -> bool {
    Rejection::of(&**error).is_some_and(Rejection::is_breaker_open)
}

#[test]
fn a_server_that_does_not_follow_is_warned_of_until_it_is_as_it_was() {
    let file = File::new("[server]\nmax_deadline = \"30s\"\n");
    let policies = file.load();
    let reload = |document: &str| {
        file.write(document);
        let reloaded = policies.reload().unwrap();
        let warnings: Vec<_> = reloaded.warnings().iter().map(|it| it.code).collect();
        warnings.join(" ")
    };
    assert_eq!(
        reload("[server]\nmax_deadline = \"20s\"\n"),
        "needs-restart"
    );
    assert_eq!(
        reload("[server]\nmax_deadline = \"20s\"\n# again\n"),
        "needs-restart"
    );
    assert_eq!(reload("\n[server]\nmax_deadline = \"30s\"\n"), "");
    let gone = reload(&catalog("deadline = \"1s\""));
    assert!(gone.contains("needs-restart"), "{gone}");
}

const OPENS_AT_TWO: &str = "breaker = { consecutive_failures = 2 }
budget = { ratio = 0.0, min_per_second = 1 }";

/// Row J1
#[tokio::test(start_paused = true)]
async fn an_open_breaker_and_a_spent_budget_outlive_a_change_of_something_else() {
    let file = File::new(&catalog(OPENS_AT_TWO));
    let policies = file.load();
    let stack = stack(&policies);
    let service = client(stack.clone(), 503, Duration::ZERO);
    // The first operation takes the only token for its resend, and both attempts fail.
    assert!(call(&service).await.is_ok());
    let (breaker, budget) = (stack.breaker_handle().unwrap(), stack.budget().clone());
    assert_eq!(
        (breaker.state(), budget.consumed()),
        (BreakerState::Open, 1)
    );
    assert!(budget.withdraw(clock::now(), None, 0).is_err());

    let change = "retry = { backoff = { base = \"200ms\" } }";
    file.write(&catalog(&format!("{OPENS_AT_TWO}\n{change}")));
    let reloaded = policies.reload().unwrap();
    let text = reloaded.dependency("catalog").unwrap().describe();
    assert!(text.contains("retry.backoff.base = \"200ms\""), "{text}");
    assert_eq!(
        (breaker.state(), budget.consumed()),
        (BreakerState::Open, 1)
    );
    assert!(budget.withdraw(clock::now(), None, 0).is_err());
    assert!(is_open(&call(&service).await.err().unwrap()));
    let fresh = policies.dependency("catalog").unwrap().http().unwrap();
    assert_eq!(fresh.breaker_handle().unwrap().state(), BreakerState::Open);
    assert_eq!(fresh.budget().consumed(), 1);
}

/// Row J3
#[tokio::test(start_paused = true)]
async fn services_in_use_see_a_new_setting_at_their_next_call() {
    let file = File::new(&catalog("deadline = \"2s\""));
    let policies = file.load();
    let mut service = client(stack(&policies), 200, Duration::ZERO);
    let clone = service.clone();
    let before = told(&call(&service).await.unwrap());
    file.write(&catalog("deadline = \"700ms\""));
    policies.reload().unwrap();
    for _ in 0..2 {
        let ready = service.ready().await.unwrap();
        let after = told(&ready.call(Request::new(String::new())).await.unwrap());
        assert!(before > 700 && after < 700, "{before} ms, then {after} ms");
        assert_eq!(told(&call(&clone).await.unwrap()), after);
    }
    assert_eq!(
        stack(&policies).worst_case().time,
        Some(Duration::from_millis(700))
    );
}

#[derive(Default, Debug)]
struct Heard(Mutex<Vec<BreakerState>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        if let What::BreakerTransition(change) = event.what {
            self.0.lock().unwrap().extend(change.to);
        }
    }
}

/// Row J4
#[tokio::test(start_paused = true)]
async fn who_listens_and_who_holds_a_handle_hears_on_without_a_gap() {
    let file = File::new(&catalog("breaker = { consecutive_failures = 3 }"));
    let policies = file.load();
    let heard = Arc::new(Heard::default());
    let stack = stack(&policies).observer(Arc::clone(&heard) as _);
    let service = client(stack.clone(), 500, Duration::ZERO);
    let breaker = stack.breaker_handle().unwrap();
    let mut transitions = breaker.transitions();
    assert!(call(&service).await.is_ok());
    assert_eq!(breaker.snapshot().consecutive_failures, 2); // the first, and the one resend that a 500 has

    // Another rule, and a window of its own: the failures in a row so far count on.
    file.write(&catalog(
        "breaker = { consecutive_failures = 3, failure_rate = 0.9, window = \"20s\" }",
    ));
    policies.reload().unwrap();
    assert!(call(&service).await.is_err()); // the resend met the open breaker
    assert_eq!(breaker.state(), BreakerState::Open);
    assert_eq!(transitions.next().await.to, Some(BreakerState::Open));
    assert_eq!(*heard.0.lock().unwrap(), [BreakerState::Open]);
    breaker.reset();
    assert!(call(&service).await.is_ok());
    assert_eq!(breaker.snapshot().rates.calls, 2);
}

/// Row J5
#[tokio::test(start_paused = true)]
async fn a_call_in_flight_ends_under_the_settings_that_it_began_with() {
    let settings = |deadline| {
        format!(
            "deadline = \"{deadline}\"\nretry = {{ max_attempts = 1, attempt_timeout = \"none\" }}"
        )
    };
    let file = File::new(&catalog(&settings("10s")));
    let policies = file.load();
    let service = client(stack(&policies), 200, Duration::from_secs(5));
    let in_flight = tokio::spawn({
        let service = service.clone();
        async move { call(&service).await.map(drop) }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    file.write(&catalog(&settings("2s")));
    policies.reload().unwrap();
    let cut = call(&service).await.map(drop).unwrap_err();
    assert!(Rejection::of(&*cut).unwrap().is_deadline_exceeded());
    in_flight.await.unwrap().unwrap();
}

#[test]
fn what_is_refused_leaves_everything_as_it_was_and_what_is_right_later_applies() {
    let both = |deadline: &str| format!("{}[dependency.psp]\n{deadline}\n", catalog(deadline));
    let file = File::new(&both("deadline = \"2s\""));
    let policies = file.load();
    // The one would be right, the other has two faults.
    file.write(&both("deadline = \"3s\"").replace(
        "[dependency.psp]\ndeadline = \"3s\"",
        "[dependency.psp]\ndeadlin = \"3s\"\nbulkhead = { max_concurrent = 0 }",
    ));
    let problems = policies.reload().unwrap_err();
    assert_eq!(problems.problems().len(), 2, "{problems}");
    let time = |policies: &Policies| stack(policies).worst_case().time.unwrap().as_secs();
    assert_eq!(time(&policies), 2);

    file.write(&both("deadline = \"2s\"\nprotocol = \"grpc\""));
    let refused = policies.reload().unwrap_err();
    assert_eq!(refused.problems()[0].code, "protocol-changed");
    std::fs::remove_file(&file.0).unwrap();
    assert_eq!(
        policies.reload().unwrap_err().problems()[0].code,
        "unreadable-file"
    );
    assert_eq!(time(&policies), 2);

    file.write(&both("deadline = \"4s\""));
    assert_eq!(time(&policies.reload().unwrap()), 4);
    assert_eq!(time(&policies), 4);
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_is_named_again_has_its_state_while_somebody_used_it() {
    let (one, two) = ("deadline = \"2s\"", "[dependency.psp]\n");
    let file = File::new(&catalog(one));
    let policies = file.load();
    let service = client(stack(&policies), 200, Duration::ZERO);
    stack(&policies).breaker_handle().unwrap().force_open();
    file.write(two);
    let reloaded = policies.reload().unwrap();
    assert_eq!(reloaded.iter().map(|it| it.0).collect::<Vec<_>>(), ["psp"]);
    assert!(policies.dependency("catalog").is_err());
    assert!(is_open(&call(&service).await.err().unwrap()));

    file.write(&format!("{}{two}", catalog("deadline = \"5s\"")));
    policies.reload().unwrap();
    let breaker = stack(&policies).breaker_handle().unwrap();
    assert_eq!(breaker.state(), BreakerState::ForcedOpen);
    breaker.reset();
    assert!(told(&call(&service).await.unwrap()) <= 5_000);

    // Nobody uses it any more: it begins anew.
    drop(service);
    breaker.force_open();
    drop((breaker, reloaded));
    file.write(two);
    let policies = policies.reload().unwrap();
    file.write(&catalog(one));
    policies.reload().unwrap();
    let state = stack(&policies).breaker_handle().unwrap().state();
    assert_eq!(state, BreakerState::ForcedOpen); // the first `policies` hold it still
}

#[test]
fn a_reloaded_stack_is_the_stack_that_a_restart_would_make() {
    let all = [
        "",
        "deadline = \"3s\"\nreserve = \"20ms\"",
        "retry = { max_attempts = 2, attempt_timeout = \"900ms\" }",
        "retry = \"off\"",
        "hedge = { delay = \"50ms\", max_attempts = 3 }",
        "hedge = { percentile = 0.9 }",
        "breaker = \"off\"",
        "breaker = { observes = \"operations\", failure_rate = 0.4, window = \"30s\" }",
        "breaker = { failure_rate = 0.7, shadow = true, open_wait = \"1s\" }",
        "bulkhead = \"off\"",
        "bulkhead = { max_concurrent = 3, max_waiting = 0, max_wait = \"deadline\" }",
        "rate_limit = { count = 10, burst = 2, max_wait = \"10ms\" }",
        "load_shed = { max_in_flight = 100 }",
        "idempotency_key = \"require\"",
        "body_idle = \"none\"\nconnect_timeout = \"300ms\"",
        "budget = { ratio = 0.5, min_per_second = 3 }",
    ];
    let file = File::new(&catalog(""));
    let policies = file.load();
    for before in all {
        for after in all {
            file.write(&catalog(before));
            policies.reload().unwrap();
            file.write(&catalog(after));
            let reloaded = policies.reload().unwrap().dependency("catalog").unwrap();
            let fresh = file.load().dependency("catalog").unwrap();
            assert_eq!(reloaded.describe(), fresh.describe(), "{before} → {after}");
            let limit = |policy: &Policy| {
                let bulkhead = policy.http().unwrap().bulkhead_handle();
                bulkhead.map(|bulkhead| bulkhead.limit())
            };
            assert_eq!(limit(&reloaded), limit(&fresh), "{before} → {after}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_place_enters_by_a_new_one_and_who_holds_one_keeps_it() {
    let places = |many| {
        let file = format!("bulkhead = {{ max_concurrent = {many}, max_wait = \"deadline\" }}");
        catalog(&file)
    };
    let file = File::new(&places(1));
    let policies = file.load();
    let bulkhead = stack(&policies).bulkhead_handle().unwrap();
    let service = client(stack(&policies), 200, Duration::from_millis(900));
    let spawn = || {
        let service = service.clone();
        tokio::spawn(async move { call(&service).await.map(drop) })
    };
    let calls = [spawn(), spawn(), spawn()];
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!((bulkhead.in_flight(), bulkhead.queued()), (1, 2));
    file.write(&places(2));
    policies.reload().unwrap();
    assert_eq!(
        (bulkhead.in_flight(), bulkhead.queued(), bulkhead.limit()),
        (2, 1, 2)
    );
    file.write(&places(1));
    policies.reload().unwrap();
    assert_eq!(
        (bulkhead.in_flight(), bulkhead.queued(), bulkhead.limit()),
        (2, 1, 1)
    );
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!((bulkhead.in_flight(), bulkhead.queued()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_was_used_of_a_rate_is_used_at_the_new_rate_too() {
    let rate = |count| {
        catalog(&format!(
            "rate_limit = {{ count = {count}, period = \"1m\", burst = 2 }}"
        ))
    };
    let file = File::new(&rate(2));
    let policies = file.load();
    let service = client(stack(&policies), 200, Duration::ZERO);
    assert!(call(&service).await.is_ok() && call(&service).await.is_ok());
    let is_limited = async || call(&service).await.is_err();
    assert!(is_limited().await);
    // One a second: the two tokens are there again in two seconds, instead of in a minute.
    file.write(&rate(60));
    policies.reload().unwrap();
    assert!(is_limited().await);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert!(!is_limited().await && is_limited().await);
}

#[tokio::test(start_paused = true)]
async fn what_was_set_by_hand_stays_whatever_the_file_says() {
    let file = File::new(&catalog("deadline = \"2s\""));
    let policies = file.load();
    let own = crate::deadline::DeadlinePolicy::within(Duration::from_millis(1_500)).unwrap();
    let service = client(stack(&policies).deadline(own), 200, Duration::ZERO);
    file.write(&catalog("deadline = \"700ms\"\nbreaker = \"off\""));
    policies.reload().unwrap();
    stack(&policies)
        .bulkhead_handle()
        .unwrap()
        .resize(1)
        .unwrap();
    assert!(told(&call(&service).await.unwrap()) > 1_000);
    // A limit that an operator set stays until the file has another.
    file.write(&catalog("deadline = \"800ms\""));
    policies.reload().unwrap();
    assert_eq!(stack(&policies).bulkhead_handle().unwrap().limit(), 1);
}

/// Ten thousand calls a second, half of them to a dependency whose breaker has opened, while policies are loaded again
/// and again, every third time from a broken file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_ten_thousand_calls_a_second_a_reload_keeps_an_open_breaker_open_and_drops_nothing() {
    const SECONDS: usize = 2;
    const EACH_MILLISECOND: usize = 10;
    let document = |deadline: u32| {
        let deadline = format!("deadline = \"{deadline}ms\"");
        let up = catalog(&format!("{deadline}\nbulkhead = \"off\""));
        let breaker =
            "breaker = { consecutive_failures = 1, open_wait = \"1h\", open_wait_cap = \"1h\" }";
        format!("{up}[dependency.psp]\n{deadline}\n{breaker}\nbulkhead = \"off\"\n")
    };
    let file = File::new(&document(5_000));
    let policies = file.load();
    let up = client(stack(&policies), 200, Duration::ZERO);
    let psp = policies.dependency("psp").unwrap().http().unwrap();
    let breaker = psp.breaker_handle().unwrap();
    let down = client(psp, 500, Duration::ZERO);
    assert!(call(&down).await.is_err());
    let over = Arc::new(AtomicU32::new(0));
    let (reloaded, is_over) = (policies.clone(), Arc::clone(&over));
    let reloading = tokio::task::spawn_blocking(move || {
        let mut reloads = 0;
        while is_over.load(SeqCst) == 0 {
            reloads += 1;
            let broken = ["", "", "deadlin = 1"][reloads as usize % 3];
            file.write(&format!("{}{broken}", document(5_000 + reloads)));
            assert_eq!(reloaded.reload().is_err(), !broken.is_empty());
            std::thread::sleep(Duration::from_millis(5));
        }
        (reloads, file)
    });
    let mut pace = tokio::time::interval(Duration::from_millis(1));
    let mut calls = Vec::new();
    for _ in 0..SECONDS * 1_000 {
        pace.tick().await;
        for _ in 0..EACH_MILLISECOND / 2 {
            let (up, down) = (up.clone(), down.clone());
            calls.push(tokio::spawn(async move {
                (told(&call(&up).await.unwrap()), call(&down).await.err())
            }));
        }
    }
    let made = calls.len();
    let mut refused = 0;
    let mut deadlines = std::collections::BTreeSet::new();
    for call in calls {
        let (deadline, error) = call.await.unwrap();
        deadlines.insert(deadline);
        refused += usize::from(is_open(&error.unwrap()));
    }
    over.store(1, SeqCst);
    let (reloads, _file) = reloading.await.unwrap();
    assert_eq!((made, refused), (SECONDS * 5_000, made));
    assert!(reloads > 10, "{reloads}");
    assert!(deadlines.len() > 1, "new settings held at the next call");
    let open = breaker.snapshot();
    assert_eq!((open.state, open.openings), (BreakerState::Open, 1));
}

/// Whoever replaces a file at once is read old or new; whoever writes in its place is refused, or read whole.
#[test]
fn a_file_that_is_replaced_while_it_is_read_is_old_or_new_and_never_both() {
    const MANY: usize = 500;
    let document = |deadline: u32| -> String {
        let one = |number| format!("[dependency.d{number}]\ndeadline = \"{deadline}s\"\n");
        (0..MANY).map(one).collect()
    };
    let file = File::new(&document(1));
    let policies = file.load();
    let over = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let beside = file.0.with_extension("next");
            for time in 0.. {
                std::fs::write(&beside, document(1 + time % 9)).unwrap();
                std::fs::rename(&beside, &file.0).unwrap();
                if over.load(SeqCst) == 1 {
                    break;
                }
            }
        });
        for _ in 0..40 {
            let loaded = policies.reload().unwrap();
            let deadlines: Vec<_> = loaded.iter().map(|it| it.1.worst_case().time).collect();
            assert_eq!(deadlines.len(), MANY);
            assert!(deadlines.iter().all(|it| *it == deadlines[0]));
        }
        over.store(1, SeqCst);
    });
}
