//! Files that are loaded again when they change, or when a signal says so.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::InvalidSetting;
use tokio::task::{JoinHandle, spawn_blocking};

use super::source::Marks;
use super::{InvalidPolicies, Policies};

/// How often files are looked at, unless told otherwise.
const EVERY: Duration = Duration::from_secs(1);

/// As often as files are looked at, at most: a look is a system call for each.
const MOST_OFTEN: Duration = Duration::from_millis(10);

/// What came of a reload.
type Reloaded = Result<Policies, InvalidPolicies>;

/// Who is told of it.
type Told = Arc<dyn Fn(&Reloaded) + Send + Sync>;

/// How files are watched; made by [`Policies::watch`].
#[must_use = "nothing is watched before it was started"]
pub struct WatchBuilder {
    policies: Policies,
    every: Duration,
    told: Option<Told>,
}

/// Files that are watched, or a signal, for as long as this is kept.
#[derive(Debug)]
#[must_use = "nothing is watched once this is dropped"]
pub struct Watch {
    task: JoinHandle<()>,
}

impl Policies {
    /// Watches the files that these policies were loaded from, and loads them again once one of them has changed.
    ///
    /// Files are looked at again and again (their length, time and identity), because that sees every way of changing one: written in
    /// its place, replaced at once by another name, or behind a link that is turned, as Kubernetes does with a `ConfigMap`; on
    /// a network's file system too. What changed is loaded when it has stayed as it is from one look to the next, so that
    /// whoever writes slowly is not read half way. What is refused changes nothing, and is loaded again once it
    /// changes again. Deployments should replace a file at once, by its name: half of a file may be a right one.
    ///
    /// ```
    /// use mamparo::policy::Policies;
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let file = std::env::temp_dir().join(format!("mamparo-watch-{}.toml", std::process::id()));
    /// # std::fs::write(&file, "[dependency.catalog]")?;
    /// let policies = Policies::load([&file])?;
    /// let watch = policies
    ///     .watch()
    ///     .every(Duration::from_secs(5))
    ///     .told(|reloaded| match reloaded {
    ///         Ok(policies) => println!("{} dependencies", policies.iter().count()),
    ///         Err(refused) => eprintln!("{refused}"),
    ///     })
    ///     .start()?;
    /// // as long as it is kept
    /// drop(watch);
    /// # std::fs::remove_file(file)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self) -> WatchBuilder {
        WatchBuilder {
            policies: self.clone(),
            every: EVERY,
            told: None,
        }
    }

    /// Loads the files again whenever the process is sent `SIGHUP`, whether or not they have changed.
    ///
    /// Before this the signal ends the process; from now on it never does, even when what is returned was dropped.
    ///
    /// # Errors
    ///
    /// The system refuses to register the signal.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime with I/O.
    #[cfg(unix)]
    pub fn reload_on_hangup(
        &self,
        told: impl Fn(&Reloaded) + Send + Sync + 'static,
    ) -> std::io::Result<Watch> {
        use tokio::signal::unix::{SignalKind, signal};

        let mut hangups = signal(SignalKind::hangup())?;
        let (policies, told) = (self.clone(), Arc::new(told) as Told);
        let task = tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                reload(&policies, Some(&told)).await;
            }
        });
        Ok(Watch { task })
    }
}

impl WatchBuilder {
    /// Sets how often the files are looked at, once a second by default; what changed is loaded at the second look.
    pub const fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Tells what came of each reload: the policies, or all that is wrong with them.
    pub fn told(mut self, told: impl Fn(&Reloaded) + Send + Sync + 'static) -> Self {
        self.told = Some(Arc::new(told));
        self
    }

    /// Begins to watch.
    ///
    /// # Errors
    ///
    /// Refuses to look more often than every 10 ms.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime with time.
    pub fn start(self) -> Result<Watch, InvalidSetting> {
        let every = self.every;
        if every < MOST_OFTEN {
            let reason = "must be at least 10 ms: each look is a system call for each file";
            return Err(InvalidSetting::new("every", format!("{every:?}"), reason));
        }
        let task = tokio::spawn(self.run());
        Ok(Watch { task })
    }

    async fn run(self) {
        let mut seen = Seen::new(self.policies.loaded_marks());
        loop {
            let policies = self.policies.clone();
            // It fails only when the runtime ends.
            let Ok(marks) = spawn_blocking(move || policies.marks()).await else {
                return;
            };
            if seen.has_settled(marks) {
                reload(&self.policies, self.told.as_ref()).await;
            }
            tokio::time::sleep(self.every).await;
        }
    }
}

/// Reads files on a thread where that may take its time.
async fn reload(policies: &Policies, told: Option<&Told>) {
    let policies = policies.clone();
    let reloaded = spawn_blocking(move || policies.reload()).await;
    if let (Ok(reloaded), Some(told)) = (reloaded, told) {
        told(&reloaded);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for WatchBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchBuilder")
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

/// What was seen of the files.
#[derive(Debug)]
struct Seen {
    last: Marks,
    /// As they were when they were loaded, or refused.
    tried: Marks,
}

impl Seen {
    const fn new(loaded: Marks) -> Self {
        let last = Marks::none();
        Self {
            last,
            tried: loaded,
        }
    }

    /// Tells whether the files are to be loaded: they are not as they were then, and the same as at the last look.
    fn has_settled(&mut self, marks: Marks) -> bool {
        let settled = self.last == marks && self.tried != marks;
        if settled {
            self.tried = marks.clone();
        }
        self.last = marks;
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_loaded_once_it_stays_as_it_is() {
        let [one, two, three] = [1, 2, 3].map(Marks::of_length);
        let mut seen = Seen::new(one.clone());
        let mut look = |marks: &Marks| seen.has_settled(marks.clone());
        assert!(!look(&one) && !look(&one), "it was loaded");
        assert!(!look(&two) && !look(&three), "somebody writes");
        assert!(look(&three) && !look(&three), "once");
        assert!(!look(&one) && look(&one), "back to what it was");
        assert!(!look(&two) && !look(&one) && !look(&one));
    }
}
