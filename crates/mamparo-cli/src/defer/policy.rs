//! From policy files to what the engine needs of them.

use std::path::PathBuf;

use mamparo::policy::{Policies as Files, Policy as File};
use mamparo_durable::policy::{Policies, PolicyFileError};
use mamparo_durable::web::Judge;

use super::trouble::Trouble;
use crate::output;
use crate::policies::{Finding, files, framed};

/// Loads policy files, and tells all that is wrong with them.
pub(super) fn load(paths: &[PathBuf]) -> Result<Files, Trouble> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(files(path).map_err(Trouble::usage)?);
    }
    Files::load(&all).map_err(|refused| {
        for problem in refused.problems() {
            output::note(&framed(&Finding::from(problem)));
        }
        Trouble::refused("the policies are refused")
    })
}

/// How often and how long is waited: by dependency, which is the kind of its transactions.
pub(super) fn policies(files: &Files) -> Result<Policies, Trouble> {
    Policies::of_files(files).map_err(|error| refused(&error))
}

/// What the answers of a dependency mean.
pub(super) fn judge(file: &File) -> Result<Judge, Trouble> {
    Judge::of_file(file).map_err(|error| refused(&error))
}

fn refused(error: &PolicyFileError) -> Trouble {
    Trouble::refused(error.to_string())
}
