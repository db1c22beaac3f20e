//! From files to policies.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::live::Dependencies;
use super::policies::{Loaded, Policies};
use super::problem::MAX_PROBLEMS;
use super::source::Marks;
use super::{
    Format, InvalidPolicies, Outline, Problem, ServerPolicy, Service, Severity, check, resolve,
    source,
};

/// Where policies are loaded from.
#[derive(Clone, Debug, Default)]
pub struct Loader {
    files: Vec<PathBuf>,
    texts: Vec<(Arc<str>, String, Format)>,
    environment: Vec<(String, String)>,
}

impl Loader {
    /// Adds a file; its ending says whether it is TOML, YAML or JSON.
    #[must_use]
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.files.push(path.as_ref().to_owned());
        self
    }

    /// Adds a document that is no file; `name` stands in messages.
    #[must_use]
    pub fn text(mut self, name: &str, document: impl Into<String>, format: Format) -> Self {
        self.texts.push((name.into(), document.into(), format));
        self
    }

    /// Lays variables such as `MAMPARO__CATALOG__RETRY__MAX_ATTEMPTS` over the files; others are not looked at.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = |(name, _): &(String, String)| source::is_ours(name);
        self.environment.extend(variables.into_iter().filter(ours));
        self
    }

    /// Reads, checks and builds everything.
    ///
    /// # Errors
    ///
    /// Tells all that is wrong at once, see [`InvalidPolicies`].
    pub fn load(self) -> Result<Policies, InvalidPolicies> {
        let loaded = self.read(&Dependencies::default())?;
        Ok(Policies::begin(self, loaded))
    }

    /// The files as they are now.
    pub(super) fn marks(&self) -> Marks {
        Marks::of(&self.files)
    }

    /// Reads and checks everything, and only then changes the dependencies that are there.
    pub(super) fn read(&self, there: &Dependencies) -> Result<Loaded, InvalidPolicies> {
        let mut problems = Vec::new();
        let marks = self.marks();
        let files = self.files.iter().map(|path| source::read(path));
        let texts = self.texts.iter();
        let texts = texts.map(|(name, document, format)| source::text(name, document, *format));
        let mut documents = Vec::new();
        for document in files.chain(texts) {
            match document {
                Ok(document) => documents.push(document),
                Err(problem) => problems.push(*problem),
            }
        }
        let (of_server, environment) = check::settings(&self.environment, &mut problems);
        let server = ServerPolicy::of(&documents, of_server, &mut problems);
        let mut views = resolve::resolve(&documents, environment, &mut problems);
        let names: Vec<_> = views.iter().map(|view| view.name.as_str()).collect();
        let service = Service::of(&documents, &names, &mut problems);
        check::one_layer_retries(&views, &service, &mut problems);
        let files = self.files.iter();
        let order: Vec<_> = files.map(|path| path.display().to_string()).collect();
        let first = order.first().map(String::as_str);
        let first = first.or_else(|| self.texts.first().map(|it| &*it.0));
        problems.extend(check::something_is_configured(first, &documents));
        drop(documents); // What is built takes their room.
        problems.sort_by_cached_key(|problem| problem.place(&order));
        // What was refused by name is not refused again by a builder.
        let refused = match problems.iter().any(is_error) {
            true => std::mem::take(&mut views),
            false => Vec::new(),
        };
        let changes = there.changes(views, &mut problems);
        if problems.iter().any(is_error) {
            problems.truncate(MAX_PROBLEMS);
            let views = refused.into_iter().chain(changes.into_views());
            let read = views.filter(|view| view.is_read).map(Outline::new);
            return Err(InvalidPolicies::new(problems, service, read.collect()));
        }
        Ok(Loaded {
            service,
            server,
            dependencies: changes.apply(),
            warnings: problems,
            marks,
        })
    }
}

fn is_error(problem: &Problem) -> bool {
    problem.severity == Severity::Error
}
