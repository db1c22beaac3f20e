//! `mamparo check --watch`.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{ChildStdout, Command};

/// The last line of the next report.
async fn verdict(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<String> {
    let next = async {
        loop {
            let line = lines.next_line().await.ok()??;
            if line.starts_with("ok: ") || line.starts_with("refused: ") {
                return Some(line);
            }
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(20), next);
    in_time.await.ok()?
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_changes_is_checked_again_and_so_is_all_on_a_hangup() {
    let file = std::env::temp_dir().join(format!("mamparo-check-{}.toml", std::process::id()));
    fs::write(&file, "[dependency.catalog]\n").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_mamparo"))
        .args(["check", "--watch"])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let right = Some("ok: 1 dependency, nothing contradicts itself");
    assert_eq!(verdict(&mut lines).await.as_deref(), right);
    fs::write(&file, "[dependency.catalog]\ndeadlin = 1\n").unwrap();
    assert_eq!(
        verdict(&mut lines).await.as_deref(),
        Some("refused: 1 error")
    );
    fs::remove_file(&file).unwrap();
    fs::write(&file, "[dependency.catalog]\n").unwrap();
    assert_eq!(verdict(&mut lines).await.as_deref(), right);
    let process = child.id().unwrap().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-HUP", &process])
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(verdict(&mut lines).await.as_deref(), right);
    child.kill().await.unwrap();
    fs::remove_file(file).unwrap();
}
