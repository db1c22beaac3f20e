//! One service's process.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use mamparo_core::BoxError;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a process may take to stop before it is killed: as long as what it does may take, and a little.
const STOP: Duration = Duration::from_secs(40);

/// The process. It ends when its input does, so it outlives nobody.
pub(super) struct Process(Child);

impl Process {
    /// Starts this program again, as a service; what it says goes to that file.
    pub(super) fn start(
        arguments: &[String],
        environment: &[(String, String)],
        log: &Path,
    ) -> Result<Self, BoxError> {
        let log = File::options().create(true).append(true).open(log)?;
        let child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .envs(environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self(child))
    }

    /// Ends it as a crash does.
    pub(super) async fn kill(mut self) -> Result<(), BoxError> {
        Ok(self.0.kill().await?)
    }

    /// Stops it in good order.
    pub(super) async fn stop(mut self) -> Result<(), BoxError> {
        self.signal(Signal::TERM)?;
        match timeout(STOP, self.0.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(_) => Err("a process did not stop in good order".into()),
            Err(_) => {
                self.kill().await?;
                Err("a process did not stop in time".into())
            }
        }
    }

    /// Lets it stand still: connections are taken, and nothing is answered.
    pub(super) fn freeze(&self) -> Result<(), BoxError> {
        self.signal(Signal::STOP)
    }

    pub(super) fn thaw(&self) -> Result<(), BoxError> {
        self.signal(Signal::CONT)
    }

    pub(super) fn has_ended(&mut self) -> Result<bool, BoxError> {
        Ok(self.0.try_wait()?.is_some())
    }

    fn signal(&self, signal: Signal) -> Result<(), BoxError> {
        let pid = self
            .0
            .id()
            .and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Ok(kill_process(pid.ok_or("the process has ended")?, signal)?)
    }
}
