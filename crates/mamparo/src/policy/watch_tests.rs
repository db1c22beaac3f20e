//! Files that change in every way in which files change, under a watch.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

const EVERY: Duration = Duration::from_millis(20);

/// A folder, gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("mamparo-watch-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// What is told: a deadline in seconds, or the code of a problem.
type Heard = UnboundedReceiver<Result<u64, &'static str>>;

fn watched(policies: &Policies) -> (Watch, Heard) {
    let (tell, heard) = unbounded_channel();
    let watch = policies.watch().every(EVERY).told(move |reloaded| {
        let heard = match reloaded {
            Ok(policies) => Ok(seconds(policies)),
            Err(refused) => Err(refused.problems()[0].code),
        };
        tell.send(heard).unwrap();
    });
    (watch.start().unwrap(), heard)
}

fn seconds(policies: &Policies) -> u64 {
    let catalog = policies.dependency("catalog").unwrap();
    catalog.worst_case().time.unwrap().as_secs()
}

fn catalog(seconds: u64) -> String {
    format!("[dependency.catalog]\ndeadline = \"{seconds}s\"\n")
}

#[derive(Debug, Default)]
struct Reloaded(std::sync::Mutex<Vec<Option<String>>>);

impl mamparo_core::Observer for Reloaded {
    fn on(&self, event: &mamparo_core::Event<'_>) {
        if let mamparo_core::What::PoliciesReloaded { refused } = event.what {
            let refused = refused.map(ToString::to_string);
            self.0.lock().unwrap().push(refused);
        }
    }
}

/// Whoever asked for it.
#[tokio::test]
async fn an_observer_hears_each_reload_whether_it_was_applied_or_refused() {
    let folder = Folder::new("observed");
    let file = folder.at("policies.toml");
    fs::write(&file, catalog(1)).unwrap();
    let heard = Arc::<Reloaded>::default();
    let policies = Policies::load([&file]).unwrap();
    let policies = policies.observer(Arc::clone(&heard) as _);
    let clone = policies.clone();
    clone.reload().unwrap();
    fs::write(&file, "[dependency.catalog]\ndeadlin = \"2s\"").unwrap();
    policies.reload().unwrap_err();
    let (_watch, mut told) = watched(&policies);
    fs::write(&file, catalog(2)).unwrap();
    assert_eq!(next(&mut told).await, Ok(2));
    let heard = heard.0.lock().unwrap();
    let [None, Some(refused), None] = heard.as_slice() else {
        panic!("{heard:?}");
    };
    assert!(refused.contains("did you mean"), "{refused}");
}

async fn next(heard: &mut Heard) -> Result<u64, &'static str> {
    let told = tokio::time::timeout(Duration::from_secs(20), heard.recv());
    told.await.expect("it is told in time").unwrap()
}

#[tokio::test]
async fn a_file_that_is_replaced_or_written_in_its_place_is_loaded_and_a_broken_one_refused() {
    let folder = Folder::new("replaced");
    let file = folder.at("policies.toml");
    fs::write(&file, catalog(1)).unwrap();
    let policies = Policies::load([&file]).unwrap();
    let (watch, mut heard) = watched(&policies);

    fs::write(&file, catalog(2)).unwrap();
    assert_eq!(next(&mut heard).await, Ok(2));
    fs::write(folder.at("next"), catalog(3)).unwrap();
    fs::rename(folder.at("next"), &file).unwrap();
    assert_eq!(next(&mut heard).await, Ok(3));

    fs::write(&file, "[dependency.catalog]\ndeadline = \"4").unwrap();
    assert_eq!(next(&mut heard).await, Err("not-toml"));
    assert_eq!(seconds(&policies), 3);
    fs::remove_file(&file).unwrap();
    assert_eq!(next(&mut heard).await, Err("unreadable-file"));
    fs::write(&file, catalog(4)).unwrap();
    assert_eq!(next(&mut heard).await, Ok(4));
    assert_eq!(seconds(&policies), 4);

    drop(watch);
    fs::write(&file, catalog(5)).unwrap();
    assert_eq!(heard.recv().await, None);
    assert_eq!(seconds(&policies), 4);
}

/// How Kubernetes changes a `ConfigMap`: files are links through a folder's link, which is replaced.
#[cfg(unix)]
#[tokio::test]
async fn a_link_that_is_turned_to_another_folder_is_a_change() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new("links");
    for (name, seconds) in [("one", 1), ("two", 2)] {
        fs::create_dir(folder.at(name)).unwrap();
        fs::write(folder.at(name).join("policies.toml"), catalog(seconds)).unwrap();
    }
    symlink("one", folder.at("..data")).unwrap();
    let file = folder.at("policies.toml");
    symlink("..data/policies.toml", &file).unwrap();
    let policies = Policies::load([&file]).unwrap();
    let (_watch, mut heard) = watched(&policies);
    symlink("two", folder.at("..data_tmp")).unwrap();
    fs::rename(folder.at("..data_tmp"), folder.at("..data")).unwrap();
    assert_eq!(next(&mut heard).await, Ok(2));
}

#[tokio::test]
async fn what_changed_before_the_watch_began_is_loaded_and_each_of_several_files_is_watched() {
    let folder = Folder::new("several");
    let (one, two) = (folder.at("one.toml"), folder.at("two.yaml"));
    fs::write(&one, catalog(1)).unwrap();
    fs::write(&two, "profile: {internal: {deadline: 4s}}").unwrap();
    let policies = Policies::load([&one, &two]).unwrap();
    fs::write(&one, "[dependency.catalog]\nprofile = \"internal\"").unwrap();
    let (_watch, mut heard) = watched(&policies);
    assert_eq!(next(&mut heard).await, Ok(4));
    fs::write(&two, "profile: {internal: {deadline: 5s}}").unwrap();
    assert_eq!(next(&mut heard).await, Ok(5));
}

#[tokio::test]
async fn files_are_not_looked_at_all_the_time() {
    let policies = Policies::loader().load().unwrap();
    let refused = policies.watch().every(Duration::from_millis(9)).start();
    assert_eq!(refused.unwrap_err().setting(), "every");
}

#[cfg(unix)]
#[tokio::test]
async fn a_hangup_loads_what_is_there() {
    let folder = Folder::new("hangup");
    let file = folder.at("policies.toml");
    fs::write(&file, catalog(1)).unwrap();
    let policies = Policies::load([&file]).unwrap();
    let heard = Arc::new(tokio::sync::Notify::new());
    let tell = Arc::clone(&heard);
    let _watch = policies.reload_on_hangup(move |reloaded| {
        assert!(reloaded.is_ok());
        tell.notify_one();
    });
    fs::write(&file, catalog(2)).unwrap();
    let process = std::process::id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-HUP", &process])
        .status();
    assert!(sent.unwrap().success());
    heard.notified().await;
    assert_eq!(seconds(&policies), 2);
}
