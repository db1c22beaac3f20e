//! All that is said of a service's methods, found by a request's path.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::InvalidSetting;
use mamparo_core::budget::Throttle;

use super::{MethodConfig, Owner, Resends};

/// As many names of methods and services as a config may have.
pub const MAX_NAMES: usize = 4096;

/// What the layers do for each method of gRPC services; clones share it, and its [`Throttle`].
///
/// Of a request's path, `service/method` is looked for, then `service`, then what holds for all: the first that is there
/// says everything. A lookup allocates nothing. See the [module](super).
#[derive(Clone, Debug)]
pub struct ServiceConfig {
    table: Arc<Table>,
}

#[derive(Debug)]
struct Table {
    methods: Vec<MethodConfig>,
    /// `service/method`, or `service/` for the others of that service.
    names: HashMap<Box<str>, MethodId>,
    all: Option<MethodId>,
    throttle: Option<Throttle>,
    ignored: Vec<String>,
}

/// Where a method's config stands in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MethodId(u32);

impl ServiceConfig {
    /// Starts a config that says nothing of any method.
    pub fn builder() -> ServiceConfigBuilder {
        ServiceConfigBuilder::default()
    }

    /// Returns what is said of the method of a request's path, `/package.Service/Method`.
    #[must_use]
    pub fn method(&self, path: &str) -> Option<&MethodConfig> {
        self.get(self.find(path)?)
    }

    /// Returns how long a call of that path may take.
    #[must_use]
    pub fn timeout(&self, path: &str) -> Option<Duration> {
        self.method(path)?.timeout()
    }

    /// Returns what stops resends while too many requests fail.
    #[must_use]
    pub fn throttle(&self) -> Option<&Throttle> {
        self.table.throttle.as_ref()
    }

    /// Returns what stands in the JSON and is not obeyed, each with its place: worth a line in a log at startup.
    ///
    /// gRPC ignores fields that it does not know, so that a config may be written for newer versions; so do we.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.table.ignored
    }

    /// Returns whether any method is hedged.
    #[must_use]
    pub fn has_hedges(&self) -> bool {
        let hedged = |method: &MethodConfig| method.owner() == Some(Owner::Hedge);
        self.table.methods.iter().any(hedged)
    }

    /// Returns the most attempts that any method's plan makes; none where no method has one.
    #[must_use]
    pub fn max_attempts(&self) -> Option<u32> {
        let attempts = |method: &MethodConfig| match method.resends()? {
            Resends::Retry(plan) => Some(plan.attempts()),
            Resends::Hedge(plan) => Some(plan.attempts()),
            Resends::Never => Some(1),
        };
        self.table.methods.iter().filter_map(attempts).max()
    }

    /// Returns the longest time that all waits of one operation can take together, pushbacks aside.
    #[must_use]
    pub fn worst_case_wait(&self) -> Duration {
        let waits = |method: &MethodConfig| match method.resends()? {
            Resends::Retry(plan) => Some(plan.worst_case_wait()),
            Resends::Hedge(_) | Resends::Never => None,
        };
        let longest = self.table.methods.iter().filter_map(waits).max();
        longest.unwrap_or_default()
    }

    /// Finds a method by its request's path.
    pub(crate) fn find(&self, path: &str) -> Option<MethodId> {
        let table = &*self.table;
        let name = path.strip_prefix('/').unwrap_or(path);
        let service = || {
            let end = name.rfind('/')?;
            table.names.get(name.get(..=end)?)
        };
        let named = || table.names.get(name).or_else(service).copied();
        if table.names.is_empty() {
            return table.all;
        }
        named().or(table.all)
    }

    pub(crate) fn get(&self, method: MethodId) -> Option<&MethodConfig> {
        self.table.methods.get(method.0 as usize)
    }

    /// Which layer owns the resends of a path's method; none where nothing is said of them.
    pub(crate) fn owner(&self, path: &str) -> Option<Owner> {
        self.method(path)?.owner()
    }
}

/// Collects what a [`ServiceConfig`] says.
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ServiceConfigBuilder {
    methods: Vec<(Vec<String>, MethodConfig)>,
    throttle: Option<Throttle>,
    ignored: Vec<String>,
}

impl ServiceConfigBuilder {
    /// Says something of one method of a service, `package.Service`.
    pub fn method(self, service: &str, method: &str, config: MethodConfig) -> Self {
        self.named(vec![name(service, method)], config)
    }

    /// Says something of all methods of a service that are not named themselves.
    pub fn service(self, service: &str, config: MethodConfig) -> Self {
        self.named(vec![name(service, "")], config)
    }

    /// Says something of all methods that are named in no other way.
    pub fn all(self, config: MethodConfig) -> Self {
        self.named(vec![String::new()], config)
    }

    /// Stops resends while too many requests fail.
    pub fn throttle(mut self, throttle: Throttle) -> Self {
        self.throttle = Some(throttle);
        self
    }

    /// Several names, each as [`name`] writes it, for one config.
    pub(super) fn named(mut self, names: Vec<String>, config: MethodConfig) -> Self {
        self.methods.push((names, config));
        self
    }

    #[cfg(feature = "service-config")]
    pub(super) fn ignoring(mut self, ignored: Vec<String>) -> Self {
        self.ignored = ignored;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses a name that is given twice, a service that is empty, a slash around it or its method, a timeout of zero,
    /// and more than [`MAX_NAMES`] names.
    pub fn build(self) -> Result<ServiceConfig, InvalidSetting> {
        let mut table = Table {
            methods: Vec::with_capacity(self.methods.len()),
            names: HashMap::new(),
            all: None,
            throttle: self.throttle,
            ignored: self.ignored,
        };
        for (names, config) in self.methods {
            if config.timeout().is_some_and(|timeout| timeout.is_zero()) {
                let reason = "must be longer than zero: without a bound, leave it out";
                return Err(InvalidSetting::new("timeout", "0s", reason));
            }
            let id = MethodId(u32::try_from(table.methods.len()).unwrap_or(u32::MAX));
            table.methods.push(config);
            names.into_iter().try_for_each(|name| table.add(name, id))?;
        }
        let table = Arc::new(table);
        Ok(ServiceConfig { table })
    }
}

/// The name under which a method is found, or a service where the method is empty.
pub(super) fn name(service: &str, method: &str) -> String {
    format!("{service}/{method}")
}

impl Table {
    fn add(&mut self, name: String, id: MethodId) -> Result<(), InvalidSetting> {
        let refused = |name: &str, reason| Err(InvalidSetting::new("name", name, reason));
        if self.names.len() >= MAX_NAMES {
            return refused(&name, "is one name too many: 4096 are read");
        }
        let twice = "is named twice: say all that holds for it in one place";
        if name.is_empty() {
            return match self.all.replace(id) {
                Some(_) => refused("(all methods)", twice),
                None => Ok(()),
            };
        }
        let (service, _) = name.rsplit_once('/').unwrap_or_default();
        if service.is_empty() || service.starts_with('/') || service.ends_with('/') {
            let reason = "must have a service and a method without slashes around them, as in package.Service";
            return refused(&name, reason);
        }
        if self.names.contains_key(name.as_str()) {
            return refused(&name, twice);
        }
        self.names.insert(name.into(), id);
        Ok(())
    }
}
