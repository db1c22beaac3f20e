//! Instructions of a call, exact: callgrind counts two runs of different length, and the difference is the calls'.

use std::env;
use std::io;
use std::process::{Child, Command, Stdio};

use mamparo_core::BoxError;

use crate::cases::Group;

/// The argument by which this program, under callgrind, is told to do one case's calls and nothing else.
const ARGUMENT: &str = "--callgrind-run";

const FEW: u64 = 500;
const MANY: u64 = 3_000;

/// The calls that this process was started for.
pub(crate) struct Run {
    case: String,
    calls: u64,
}

impl Run {
    /// What the arguments ask for, if they ask for a run.
    pub(crate) fn asked(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut arguments = arguments
            .skip_while(|argument| argument != ARGUMENT)
            .skip(1);
        Some(Self {
            case: arguments.next()?,
            calls: arguments.next()?.parse().ok()?,
        })
    }

    /// Does the calls.
    pub(crate) fn work(&self, groups: &[Group]) -> Result<(), BoxError> {
        let mut cases = groups.iter().flat_map(|group| &group.cases);
        let case = cases.find(|case| case.name == self.case);
        let case = case.ok_or_else(|| format!("no case is called {}", self.case))?;
        case.make()?(self.calls);
        Ok(())
    }
}

/// Instructions of one call of a case, the harness's own included; none where valgrind is not installed.
pub(super) fn instructions(case: &str) -> Result<Option<f64>, BoxError> {
    let (few, many) = match (start(case, FEW), start(case, MANY)) {
        (Ok(few), Ok(many)) => (few, many),
        (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        (Err(error), _) | (_, Err(error)) => return Err(error.into()),
    };
    let (few, many) = (collected(few)?, collected(many)?);
    // A peer that measures the processor when it starts does more or less then, and may hide its calls.
    let calls = many.checked_sub(few);
    Ok(calls.map(|count| count as f64 / (MANY - FEW) as f64))
}

fn start(case: &str, calls: u64) -> io::Result<Child> {
    Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe()?)
        .args([ARGUMENT, case, &calls.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
}

/// The total that callgrind prints at its end.
fn collected(run: Child) -> Result<u64, BoxError> {
    let output = run.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let total = text
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1));
    let total = total.and_then(|total| total.trim().parse().ok());
    total.ok_or_else(|| format!("callgrind counted nothing:\n{text}").into())
}
