//! What was typed as one file or folder: a service with its policies, or what is wrong with them.

use std::path::Path;

use mamparo::policy::{Outline, Policies, Policy};

use crate::policies::{Finding, files};

/// A service, by its policies.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) name: String,
    /// None where they are refused.
    pub(super) policies: Option<Policies>,
    /// What it says of itself, and of each dependency that could be read, whether they are refused or not.
    about: mamparo::policy::Service,
    outlines: Vec<Outline>,
    pub(super) findings: Vec<Finding>,
}

impl Service {
    /// Reads a file, or all of a folder.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let files = files(path)?;
        let stem = if path.is_dir() {
            path.canonicalize()
                .ok()
                .and_then(|path| Some(path.file_name()?.to_owned()))
        } else {
            path.file_stem().map(ToOwned::to_owned)
        };
        let stem = stem.unwrap_or_default().to_string_lossy().into_owned();
        Ok(match Policies::load(&files) {
            Ok(policies) => Self {
                name: policies.service().name.clone().unwrap_or(stem),
                about: policies.service().clone(),
                outlines: policies.iter().map(|(_, it)| it.outline()).collect(),
                findings: policies.warnings().iter().map(Finding::from).collect(),
                policies: Some(policies),
            },
            Err(refused) => Self {
                name: refused.service().name.clone().unwrap_or(stem),
                about: refused.service().clone(),
                outlines: refused.outlines().to_vec(),
                findings: refused.problems().iter().map(Finding::from).collect(),
                policies: None,
            },
        })
    }

    /// Its dependencies, by name.
    pub(super) fn dependencies(&self) -> impl Iterator<Item = (&str, &Policy)> {
        self.policies.iter().flat_map(Policies::iter)
    }

    /// Its dependencies, whether they are refused or not.
    pub(super) fn outlines(&self) -> impl Iterator<Item = &Outline> {
        self.outlines.iter()
    }

    /// The dependencies that it calls while it serves.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Outline> {
        let outlines = self.outlines.iter();
        outlines.filter(|outline| self.about.does_call(outline.name()))
    }

    /// What sends its calls of a dependency again outside of the policies: who, and how many attempts.
    pub(super) fn external(&self, dependency: &str) -> impl Iterator<Item = (&str, u32)> {
        let retriers = self.about.external_retriers.iter();
        let before = retriers.filter(move |retrier| retrier.is_before(dependency));
        before.map(|retrier| (retrier.name.as_str(), retrier.attempts))
    }
}
