//! All policies of a program.

use std::error::Error;
use std::fmt::{self, Display};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mamparo_core::grpc::Grpc;
use mamparo_core::{CallContext, Event, Observer, What};
use tokio::sync::watch;
use tower_layer::Identity;

use super::live::{Dependencies, Live};
use super::loader::Loader;
use super::source::Marks;
use super::view::{Effective, View};
use super::{InvalidPolicies, Origin, Plan, Problem, ServerPolicy, Service, describe};
use crate::stack::{Stack, WorstCase};

/// The policies of all dependencies, checked, as they were loaded; see the [module](super).
///
/// Clones, and what [`reload`](Self::reload) returns, are of the same dependencies.
#[derive(Clone, Debug)]
pub struct Policies {
    loaded: Arc<Loaded>,
    shared: Arc<Shared>,
}

/// What was loaded, at once.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) service: Service,
    pub(super) server: ServerPolicy,
    pub(super) dependencies: Dependencies,
    pub(super) warnings: Vec<Problem>,
    /// The files as they were before they were read.
    pub(super) marks: Marks,
}

#[derive(Debug)]
struct Shared {
    loader: Loader,
    /// What a server runs by: as it was loaded first.
    server: ServerPolicy,
    current: Mutex<Arc<Loaded>>,
    /// One reload after the other.
    reloading: Mutex<()>,
    reloads: watch::Sender<Reloads>,
    /// Who hears of reloads.
    observer: Mutex<Option<Arc<dyn Observer>>>,
}

/// What came of the last reload; see [`Policies::reloads`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloads {
    /// With how many problems it was refused; none where it was accepted.
    pub refused_with: Option<usize>,
}

/// The policy of one dependency, and its state: whoever asks for it twice gets the same.
///
/// What it says is as it was when it was asked for; the services of its stack follow what is loaded later.
#[derive(Clone, Debug)]
pub struct Policy {
    made: Arc<Made>,
}

#[derive(Debug)]
pub(super) struct Made {
    pub(super) view: View,
    pub(super) live: Live,
}

impl Policies {
    /// What was loaded first.
    pub(super) fn begin(loader: Loader, loaded: Loaded) -> Self {
        let loaded = Arc::new(loaded);
        let shared = Shared {
            loader,
            server: loaded.server.clone(),
            current: Mutex::new(Arc::clone(&loaded)),
            reloading: Mutex::default(),
            reloads: watch::Sender::default(),
            observer: Mutex::default(),
        };
        Self {
            loaded,
            shared: Arc::new(shared),
        }
    }

    /// Loads files, and lays the program's environment over them.
    ///
    /// # Errors
    ///
    /// Tells all that is wrong at once, see [`InvalidPolicies`].
    pub fn load<P: AsRef<Path>>(
        files: impl IntoIterator<Item = P>,
    ) -> Result<Self, InvalidPolicies> {
        let loader = files.into_iter().fold(Self::loader(), Loader::file);
        loader
            .environment(std::env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            }))
            .load()
    }

    /// Begins with no file and no environment.
    #[must_use]
    pub fn loader() -> Loader {
        Loader::default()
    }

    /// Loads the same files and the same environment again, and changes what changed: all of it, or nothing.
    ///
    /// Services in use see it at their next call, and calls in flight end as they began; see the [module](super). What
    /// is returned is as it was loaded now; these policies still say what they said before.
    ///
    /// # Errors
    ///
    /// Tells all that is wrong at once; then everything stays as it is, and a later reload may succeed. Besides what
    /// [`load`](Self::load) refuses, a dependency can't change its protocol.
    pub fn reload(&self) -> Result<Self, InvalidPolicies> {
        let reloaded = self.reload_in_turn();
        let refused = reloaded
            .as_ref()
            .err()
            .map(|it| it as &(dyn Error + 'static));
        // Nothing is locked any more: whoever hears it may load again.
        let observer = self.shared.observer().clone();
        let what = What::PoliciesReloaded { refused };
        Event::report(observer.as_ref(), &CallContext::EMPTY, what);
        reloaded
    }

    fn reload_in_turn(&self) -> Result<Self, InvalidPolicies> {
        let shared = &self.shared;
        let reloading = shared.reloading.lock();
        let _reloading = reloading.unwrap_or_else(PoisonError::into_inner);
        let read = shared.loader.read(&shared.current().dependencies);
        let refused_with = read.as_ref().err().map(|error| error.problems().len());
        let loaded = read.map(|mut loaded| {
            let needs_restart = loaded.server.changed_since(&shared.server);
            loaded.warnings.extend(needs_restart);
            *shared.locked() = Arc::new(loaded);
        });
        shared.reloads.send_replace(Reloads { refused_with });
        loaded.map(|()| self.current())
    }

    /// Sets who hears of reloads by whichever clone, whether a call, a [watch](Self::watch) or a signal asks for them; nobody by default.
    ///
    /// Each is one [`What::PoliciesReloaded`]. What the services do is told to the observers of their stacks.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        *self.shared.observer() = Some(observer);
        self
    }

    /// Follows reloads, by whichever clone, from now on: those that were refused, too.
    #[must_use]
    pub fn reloads(&self) -> watch::Receiver<Reloads> {
        self.shared.reloads.subscribe()
    }

    /// Returns the policies as they were loaded last, by whichever clone.
    #[must_use]
    pub fn current(&self) -> Self {
        Self {
            loaded: self.shared.current(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Returns the policy of a dependency, as it was loaded last.
    ///
    /// # Errors
    ///
    /// There is none of that name: the error names those that there are.
    pub fn dependency(&self, name: &str) -> Result<Policy, UnknownDependency> {
        let current = self.shared.current();
        let named = &current.dependencies.named;
        named.get(name).cloned().ok_or_else(|| UnknownDependency {
            name: name.to_owned(),
            known: named.keys().cloned().collect(),
        })
    }

    /// Returns all policies, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Policy)> {
        let all = self.loaded.dependencies.named.iter();
        all.map(|(name, policy)| (name.as_str(), policy))
    }

    /// Returns the service that they belong to.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.loaded.service
    }

    pub(super) fn loaded_marks(&self) -> Marks {
        self.shared.current().marks.clone()
    }

    /// The files as they are now.
    pub(super) fn marks(&self) -> Marks {
        self.shared.loader.marks()
    }

    /// Returns the server's own policy.
    #[must_use]
    pub fn server(&self) -> &ServerPolicy {
        &self.loaded.server
    }

    /// Returns what is legal but unwise.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.loaded.warnings
    }
}

impl Shared {
    fn current(&self) -> Arc<Loaded> {
        Arc::clone(&self.locked())
    }

    fn locked(&self) -> MutexGuard<'_, Arc<Loaded>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observer(&self) -> MutexGuard<'_, Option<Arc<dyn Observer>>> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Policy {
    pub(super) fn new(made: Made) -> Self {
        Self {
            made: Arc::new(made),
        }
    }

    pub(super) fn made(&self) -> &Made {
        &self.made
    }

    /// Returns the dependency's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.made.view.name
    }

    /// Returns where its table begins.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.made.view.origin
    }

    /// Returns the URL that was written for it.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.made.view.text("url")
    }

    /// Returns the arithmetic of its deadline.
    #[must_use]
    pub fn plan(&self) -> Plan {
        Plan::of(&self.made.view)
    }

    /// Returns what an operation costs at worst, everything cut by the deadline.
    #[must_use]
    pub fn worst_case(&self) -> WorstCase {
        match &self.made.live {
            Live::Http(_, stack) => stack.worst_case(),
            Live::Grpc(_, stack) => stack.worst_case(),
        }
    }

    /// Returns the stack of a dependency that speaks HTTP; all of its clones share one state.
    ///
    /// # Errors
    ///
    /// Refuses where the file says `protocol = "grpc"`.
    pub fn http(&self) -> Result<Stack, OtherProtocol> {
        match &self.made.live {
            Live::Http(updates, stack) => Ok(updates.following(stack)),
            Live::Grpc(..) => Err(OtherProtocol {
                name: self.name().to_owned(),
                protocol: "grpc",
            }),
        }
    }

    /// Returns the stack of a dependency that speaks gRPC; all of its clones share one state.
    ///
    /// # Errors
    ///
    /// Refuses where the file does not say `protocol = "grpc"`.
    pub fn grpc(&self) -> Result<Stack<Identity, Identity, Identity, Grpc>, OtherProtocol> {
        match &self.made.live {
            Live::Grpc(updates, stack) => Ok(updates.following(stack)),
            Live::Http(..) => Err(OtherProtocol {
                name: self.name().to_owned(),
                protocol: "http",
            }),
        }
    }

    /// Returns every setting with the value that holds, and where it comes from.
    #[must_use]
    pub fn effective(&self) -> Vec<Effective> {
        self.made.view.effective()
    }

    /// Says what the policy does: the layers in order, each value with its origin, and the worst case in figures.
    #[must_use]
    pub fn describe(&self) -> String {
        let stack = match &self.made.live {
            Live::Http(_, stack) => stack.to_string(),
            Live::Grpc(_, stack) => stack.to_string(),
        };
        describe::describe(&self.made.view, &stack)
    }
}

/// There is no dependency of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDependency {
    name: String,
    known: Vec<String>,
}

impl Display for UnknownDependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(f, "there is no policy for the dependency {name:?}: ")?;
        match self.known.is_empty() {
            true => f.write_str("the files name none"),
            false => write!(f, "the files name {}", self.known.join(", ")),
        }
    }
}

impl Error for UnknownDependency {}

/// The dependency speaks another protocol than was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherProtocol {
    name: String,
    protocol: &'static str,
}

impl Display for OtherProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, protocol } = self;
        write!(
            f,
            "{name}: its policy says that it speaks {protocol}: write protocol, or ask for a stack of {protocol}"
        )
    }
}

impl Error for OtherProtocol {}
