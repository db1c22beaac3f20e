use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Supervisor, Watch, Worker};
use crate::backend::{BackendError, BoxFuture, Trouble};
use crate::handler::Listener;
use crate::machine::{Alert, AlertKind};

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<Alert>>);

impl Listener for Heard {
    fn alert(&self, alert: &Alert) {
        self.0.lock().unwrap().push(alert.clone());
    }
}

/// Panics so many times, then works.
struct Dies(AtomicU32);

impl Worker for Dies {
    fn name(&self) -> &str {
        "dies"
    }

    fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let left = self.0.load(Ordering::Relaxed);
            self.0.store(left.saturating_sub(1), Ordering::Relaxed);
            assert_eq!(left, 0, "on purpose");
            watch.stopped().await;
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_is_told_is_not_ready_and_is_started_again() {
    let heard = Arc::new(Heard::default());
    let supervisor = Supervisor::new().worker(Dies(AtomicU32::new(2)));
    let running = supervisor.listener(heard.clone()).run();
    assert!(running.is_ready());
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(!running.is_ready());
    assert_eq!(&*running.down()[0], "dies");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(running.is_ready());
    running.stop().await.unwrap();
    let heard = heard.0.lock().unwrap();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0].kind, AlertKind::TaskDied);
    let detail = heard[0].detail.as_ref().unwrap().as_str();
    assert!(detail.starts_with("dies: it panicked:"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_too_often_ends_all_of_them() {
    let supervisor = Supervisor::new()
        .worker(Dies(AtomicU32::new(9)))
        .worker(Dies(AtomicU32::new(0)));
    let running = supervisor.max_restarts(3).run();
    let died = running.ended().await.unwrap_err();
    assert_eq!(died.name(), "dies");
    assert!(
        died.to_string()
            .starts_with("dies died too often: it panicked")
    );
}

/// Works until it is told to stop, and holds something as long.
struct Held(Arc<()>);

impl Worker for Held {
    fn name(&self) -> &str {
        "held"
    }

    fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
        let held = self.0.clone();
        Box::pin(async move {
            watch.stopped().await;
            drop(held);
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn workers_end_when_nobody_holds_them_any_more() {
    let held = Arc::new(());
    let running = Supervisor::new().worker(Held(held.clone())).run();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(Arc::strong_count(&held) > 1);
    drop(running);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Returns though nobody told it to.
struct Returns;

impl Worker for Returns {
    fn name(&self) -> &str {
        "returns"
    }

    fn run(&self, _: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_returns_unasked_has_died() {
    let heard = Arc::new(Heard::default());
    let supervisor = Supervisor::new().worker(Returns).max_restarts(2);
    let running = supervisor.listener(heard.clone()).run();
    let died = running.ended().await.unwrap_err();
    assert_eq!(
        died.to_string(),
        "returns died too often: it ended by itself"
    );
    assert!(!running.is_ready());
    assert_eq!(heard.0.lock().unwrap().len(), 3);
}

/// Can't reach what it needs, twice.
struct Fails;

impl Worker for Fails {
    fn name(&self) -> &str {
        "fails"
    }

    fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            for _ in 0..2 {
                watch.fails(&BackendError::new(
                    Trouble::Unavailable,
                    "it does not answer",
                ));
                watch.pause(Duration::from_secs(1)).await;
            }
            watch.works();
            watch.stopped().await;
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_needs_and_does_not_answer_is_told_once_and_makes_it_not_ready() {
    let heard = Arc::new(Heard::default());
    let running = Supervisor::new()
        .worker(Fails)
        .listener(heard.clone())
        .run();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!running.is_ready());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(running.is_ready());
    running.stop().await.unwrap();
    let heard = heard.0.lock().unwrap();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].kind, AlertKind::BackendFails);
}
