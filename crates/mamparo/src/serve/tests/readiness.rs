//! When a server is ready, and what it says until then.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ::http::{Method, Request, Response};
use mamparo_core::{BoxError, Event, Observer, What, clock};
use tower::ServiceExt;

use super::super::*;

async fn ask(readiness: &Readiness, method: Method) -> Response<String> {
    let request = Request::builder().method(method).body(()).unwrap();
    readiness.clone().oneshot(request).await.unwrap()
}

/// A dependency that is there at the n-th look, and how often it was looked for.
fn there_at(
    n: usize,
) -> (
    impl Fn() -> std::future::Ready<Result<(), BoxError>>,
    Arc<AtomicUsize>,
) {
    let looks = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looks);
    let check = move || {
        let look = count.fetch_add(1, Ordering::Relaxed) + 1;
        std::future::ready(if look < n {
            Err("refused".into())
        } else {
            Ok(())
        })
    };
    (check, looks)
}

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        if let What::CheckFailed { name, error, wait } = event.what {
            let millis = wait.as_millis();
            self.0.lock().unwrap().push(format!("{name}: {error}"));
            assert!((50..=5_000).contains(&millis), "{millis} ms");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_not_ready_until_each_dependency_was_there_once() {
    let ((database, looks), (queue, _)) = (there_at(4), there_at(1));
    let heard = Heard::default();
    let readiness = Readiness::builder()
        .check("database", database)
        .check("queue", queue)
        .observer(Arc::new(heard.clone()))
        .build()
        .unwrap();
    let answer = ask(&readiness, Method::GET).await;
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.headers()["cache-control"], "no-store");
    assert!(answer.headers().contains_key("retry-after"));
    assert!(
        answer
            .body()
            .contains(r#""waiting-for":["database","queue"]"#),
        "{}",
        answer.body()
    );

    let watching = tokio::spawn({
        let readiness = readiness.clone();
        async move { readiness.watch().await }
    });
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(readiness.waiting_for(), ["database"]);
    let start = clock::now();
    watching.await.unwrap().unwrap();
    assert!(
        clock::now() - start >= Duration::from_millis(50 + 100 + 200),
        "with backoff"
    );
    assert_eq!(ask(&readiness, Method::GET).await.status(), 200);
    assert_eq!(*heard.0.lock().unwrap(), ["database: refused"; 3]);

    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(
        looks.load(Ordering::Relaxed),
        4,
        "it is not looked for again"
    );
    readiness.stop();
    let answer = ask(&readiness, Method::HEAD).await;
    assert_eq!(
        (answer.status().as_u16(), answer.body().as_str()),
        (503, "")
    );
}

#[tokio::test(start_paused = true)]
async fn a_check_that_hangs_is_given_up_and_repeated() {
    let looks = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looks);
    let check = move || {
        let look = count.fetch_add(1, Ordering::Relaxed);
        async move {
            if look == 0 {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    };
    let readiness = Readiness::builder()
        .check("database", check)
        .build()
        .unwrap();
    let start = clock::now();
    readiness.watch().await.unwrap();
    assert!(clock::now() - start >= Duration::from_secs(2));
    assert!(readiness.is_ready());
}

#[tokio::test(start_paused = true)]
async fn what_is_set_up_wrong_is_not_waited_for() {
    let wrong = || async { Err(std::io::Error::other(Misconfigured::new("no such role")).into()) };
    let never = || async { Err("refused".into()) };
    let readiness = Readiness::builder()
        .check("database", wrong)
        .check("queue", never)
        .build()
        .unwrap();
    let error = readiness.watch().await.unwrap_err();
    assert_eq!(error.check(), "database");
    assert!(error.to_string().contains("no such role"), "{error}");
    let panics = || async { panic!("on purpose") };
    let readiness = Readiness::builder()
        .check("database", panics)
        .build()
        .unwrap();
    assert!(readiness.watch().await.is_err());
}

#[test]
fn nonsense_is_refused_by_name() {
    let there = || async { Ok(()) };
    let twice = Readiness::builder()
        .check("a", there)
        .check("a", there)
        .build();
    assert_eq!(twice.unwrap_err().setting(), "check");
    let never = Readiness::builder().limit(Duration::ZERO).build();
    assert_eq!(never.unwrap_err().setting(), "limit");
    let graceless = StopPolicy::builder().grace(Duration::ZERO).build();
    assert_eq!(graceless.unwrap_err().setting(), "grace");
}
