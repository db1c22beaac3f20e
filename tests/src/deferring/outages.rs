//! The store goes away under a running engine, or has no room, and comes back.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mamparo_core::clock;
use mamparo_testkit::private::PrivatePostgres;
use mamparo_testkit::proxy::{Fault, FaultProxy};
use tokio::time::timeout;

use super::checks::{Told, each_is_as_the_dependency_says, until_all_ended};
use super::dependency::Dependency;
use super::engine::open;
use super::process::{Said, Spec, Worker};

/// The alert that says so.
const FAILS: &str = "backend_fails";

/// An engine, and those that tell it what to do until it is done.
struct Rig {
    worker: Worker,
    dependency: Dependency,
    told: Told,
    undone: Vec<String>,
    /// The alerts about the store, as they were said.
    fails: Vec<String>,
}

impl Rig {
    async fn start(place: &str) -> Self {
        let dependency = Dependency::start(5).await;
        let mut spec = Spec::new(place, dependency.address);
        spec.restless = true;
        Self {
            worker: Worker::start(&spec).await,
            dependency,
            told: Told::default(),
            undone: Vec::new(),
            fails: Vec::new(),
        }
    }

    async fn begin(&mut self, name: &str, count: usize) {
        for number in 0..count {
            let id = format!("{name}-{number}x");
            self.worker.tell(&format!("begin {id}")).await;
            self.undone.push(format!("begin {id}"));
            self.told.begun.insert(id, None);
        }
    }

    /// Listens for so long.
    async fn listen(&mut self, time: Duration) {
        let until = clock::now() + time;
        while let Ok(said) = timeout(until - clock::now(), self.worker.says()).await {
            match said.expect("it lives") {
                Said::Did(line) if line.ends_with("Failed") => {}
                Said::Did(line) => self.undone.retain(|order| !line.starts_with(order)),
                Said::Alert(alert) if alert.starts_with(FAILS) => self.fails.push(alert),
                Said::Alert(alert) => self.told.alert(&alert),
                Said::Stopped(_) => panic!("nobody stopped it"),
            }
            if clock::now() >= until {
                return;
            }
        }
    }

    /// For as long as the store is away, a person hears of it once for each task, and nothing asks in a loop.
    async fn away(&mut self, time: Duration, why: &str) {
        self.fails.clear();
        let before = self.worker.processor_time();
        self.listen(time).await;
        let spent = self.worker.processor_time() - before;
        println!(
            "{why}: {spent:?} of processor time in {time:?}, {:#?}",
            self.fails
        );
        assert!(spent < time / 4, "{spent:?} in {time:?} while {why}");
        assert!(self.fails.len() <= 2 * 5, "{:#?}", self.fails);
    }

    /// All is told again until it is done, and then is as it should be.
    async fn ends(mut self, place: &str) {
        let began = clock::now();
        while !self.undone.is_empty() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{:?}",
                self.undone
            );
            for order in self.undone.clone() {
                self.worker.tell(&order).await;
            }
            self.listen(Duration::from_millis(500)).await;
        }
        let backend = open(place).await;
        let all = self.told.begun.len() as u64;
        until_all_ended(&backend, all, Duration::from_secs(30)).await;
        self.worker.terminate().await;
        while let Some(said) = self.worker.says().await {
            if let Said::Alert(alert) = said {
                self.told.alert(&alert);
            }
        }
        each_is_as_the_dependency_says(&backend, &self.dependency, &self.told).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_outlives_its_postgres_and_cut_connections() {
    let server = PrivatePostgres::start().await;
    let proxy = FaultProxy::start(server.address()).await;
    let place = format!("postgres {} outages", server.url_at(proxy.address()));
    let mut rig = Rig::start(&place).await;
    rig.begin("before", 60).await;
    rig.listen(Duration::from_millis(300)).await;
    server.stop().await;
    rig.away(Duration::from_secs(4), "it is stopped").await;
    assert!(
        rig.fails.iter().any(|it| it.contains("PostgreSQL")),
        "{:?}",
        rig.fails
    );
    server.restart().await;
    rig.begin("after", 60).await;
    rig.listen(Duration::from_secs(1)).await;
    for (fault, why) in [
        (Fault::ResetAfter(0), "connections are reset"),
        (Fault::BlackHole, "nothing comes through"),
    ] {
        proxy.set(fault).await;
        rig.away(Duration::from_secs(3), why).await;
        proxy.set(Fault::None).await;
        rig.begin(&why.replace(' ', "-"), 20).await;
        rig.listen(Duration::from_secs(1)).await;
    }
    rig.ends(&place).await;
}

/// A file system of its own, of which one can see the end.
struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    fn mount(at: &'a Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=48m", "mamparo"])
            .arg(at);
        mount
            .output()
            .is_ok_and(|done| done.status.success())
            .then_some(Self(at))
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        // Lazily: a process that was just killed may still have the file.
        drop(Command::new("umount").arg("-l").arg(self.0).status());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_outlives_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(folder.path()) else {
        println!("only who may mount a file system can fill one");
        return;
    };
    let place = format!("sqlite {}", small.0.join("engine.db").display());
    let mut rig = Rig::start(&place).await;
    rig.begin("before", 60).await;
    rig.listen(Duration::from_millis(300)).await;
    let filler = small.0.join("filler");
    let full = std::fs::write(&filler, vec![1; 64 << 20]);
    assert!(full.is_err(), "it has an end");
    // The log has some room left from before.
    rig.begin("meanwhile", 60).await;
    rig.away(Duration::from_secs(4), "the disk is full").await;
    assert!(
        rig.fails.iter().any(|it| it.contains("full")),
        "{:?}",
        rig.fails
    );
    rig.begin("refused", 60).await;
    rig.listen(Duration::from_secs(1)).await;
    assert!(!rig.undone.is_empty(), "nothing was refused");
    std::fs::remove_file(filler).unwrap();
    rig.ends(&place).await;
}
