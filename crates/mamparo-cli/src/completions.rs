//! `mamparo completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::exit::Exit;
use crate::output;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "mamparo", &mut script);
    match output::all(&script) {
        Ok(()) => Exit::Success,
        Err(_) => Exit::Unwritten,
    }
}
