use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::{Compensated, StuckSagas, Watchdog};
use crate::backend::{BackendError, BoxFuture};
use crate::handler::Listener;
use crate::machine::{Alert, AlertKind};
use crate::supervise::{Supervised, Supervisor};

/// Sagas that are stuck, oldest first, and whether each can be compensated.
#[derive(Clone, Debug)]
struct Stuck(Arc<Mutex<BTreeMap<u32, bool>>>);

impl Stuck {
    fn of(broken: u32, sound: u32) -> Self {
        let all = (0..broken + sound).map(|number| (number, number >= broken));
        Self(Arc::new(Mutex::new(all.collect())))
    }

    fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn watched(&self, heard: &Arc<Heard>) -> Supervised {
        let watchdog = Watchdog::builder("w", Arc::new(self.clone())).limit(10);
        let supervisor = Supervisor::new().worker(watchdog.build().unwrap());
        supervisor.listener(heard.clone()).run()
    }
}

impl StuckSagas for Stuck {
    fn compensate(&self, limit: usize) -> BoxFuture<'_, Result<Compensated, BackendError>> {
        let mut stuck = self.0.lock().unwrap();
        let found: Vec<(u32, bool)> = stuck.iter().take(limit).map(|(a, b)| (*a, *b)).collect();
        let mut compensated = Compensated::default();
        for (number, sound) in found {
            if sound {
                stuck.remove(&number);
                compensated.done += 1;
            } else {
                let why = "its row is broken".to_owned();
                compensated.failed.push((number.to_string(), why));
            }
        }
        Box::pin(std::future::ready(Ok(compensated)))
    }
}

/// Keeps which sagas could not be compensated.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Listener for Heard {
    fn alert(&self, alert: &Alert) {
        assert_eq!(alert.kind, AlertKind::Uncompensated);
        let detail = alert.detail.as_ref().unwrap().as_str().to_owned();
        self.0.lock().unwrap().push(detail);
    }
}

#[tokio::test(start_paused = true)]
async fn sagas_that_fail_keep_no_other_from_its_turn() {
    let (stuck, heard) = (Stuck::of(25, 50), Arc::default());
    let running = stuck.watched(&heard);
    tokio::time::sleep(Duration::from_secs(15 * 60)).await;
    assert_eq!(stuck.left(), 25);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_is_told_once_while_cycles_follow_one_another() {
    let (stuck, heard) = (Stuck::of(1, 100), Arc::default());
    let running = stuck.watched(&heard);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stuck.left(), 1, "all others at once");
    assert_eq!(*heard.0.lock().unwrap(), ["w: 0: its row is broken"]);
    tokio::time::sleep(Duration::from_secs(66)).await;
    assert_eq!(heard.0.lock().unwrap().len(), 2, "and again a minute later");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn so_many_cycles_follow_one_another_and_then_comes_a_pause() {
    let (stuck, heard) = (Stuck::of(0, 5_000), Arc::default());
    let running = stuck.watched(&heard);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stuck.left(), 4_000);
    tokio::time::sleep(Duration::from_secs(66)).await;
    assert_eq!(stuck.left(), 3_000);
    running.stop().await.unwrap();
}
