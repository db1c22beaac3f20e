//! The plan of a chain: from the services that nobody calls, along each path inward.

use std::collections::BTreeMap;

use mamparo::policy::{Origin, Outline};
use serde::Serialize;

use super::service::Service;
use crate::policies::Finding;

/// As many paths are followed: a chain of many services with many calls each has more than anybody reads.
const MAX_PATHS: usize = 1_000;

/// What is known of the paths through several services.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pub(super) paths: Vec<Path>,
    pub(super) findings: Vec<Finding>,
    pub(super) questions: Vec<String>,
}

/// One way from a service that nobody calls to a dependency that calls nothing further.
#[derive(Debug, Serialize)]
pub(super) struct Path {
    /// Who is passed, from the outside inward.
    pub(super) names: Vec<String>,
    /// What multiplies the calls, in that order.
    pub(super) factors: Vec<Factor>,
    /// How often the innermost is called for one operation, at worst.
    pub(super) calls: u64,
    /// Who sends again.
    pub(super) owners: Vec<String>,
}

/// Who sends a call how often.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Factor {
    pub(super) by: String,
    pub(super) external: bool,
    pub(super) attempts: u32,
}

/// A call of one service to the next.
#[derive(Clone, Copy, Debug)]
struct Hop<'a> {
    service: &'a Service,
    policy: &'a Outline,
}

impl Chain {
    /// Follows all calls; a single service that names no other retrier has no chain.
    pub(super) fn of(services: &[Service]) -> Self {
        let mut chain = Self::default();
        let retriers = services
            .iter()
            .any(|it| it.calls().any(|to| it.external(to.name()).next().is_some()));
        if services.len() < 2 && !retriers {
            return chain;
        }
        let by_name: BTreeMap<_, _> = services.iter().map(|it| (it.name.as_str(), it)).collect();
        for service in outermost(services) {
            chain.follow(service, &by_name, &mut Vec::new());
        }
        chain.ask();
        chain
    }

    fn follow<'a>(
        &mut self,
        service: &'a Service,
        services: &BTreeMap<&str, &'a Service>,
        hops: &mut Vec<Hop<'a>>,
    ) {
        for policy in service.calls() {
            if self.paths.len() >= MAX_PATHS {
                return;
            }
            hops.push(Hop { service, policy });
            let dependency = policy.name();
            let next = services.get(dependency).copied();
            let is_passed = hops.iter().any(|hop| hop.service.name == dependency);
            if is_passed {
                self.find(circle(hops));
            }
            match next.filter(|next| !is_passed && next.calls().next().is_some()) {
                Some(next) => self.follow(next, services, hops),
                None => self.end(hops),
            }
            hops.pop();
        }
    }

    /// A path is whole: what is it worth?
    fn end(&mut self, hops: &[Hop<'_>]) {
        let path = Path::of(hops);
        // Two of one service were told when its policies were read.
        if hops.iter().filter(|hop| hop.sends_again()).count() > 1 {
            self.find(owners(hops, &path));
        }
        for pair in hops.windows(2) {
            if let [outer, inner] = pair {
                self.findings_of(deadline(outer, inner));
            }
        }
        self.paths.push(path);
    }

    fn findings_of(&mut self, finding: Option<Finding>) {
        finding.into_iter().for_each(|finding| self.find(finding));
    }

    /// Paths share their outer part, whose faults are told once.
    fn find(&mut self, finding: Finding) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// What only a person knows.
    fn ask(&mut self) {
        let is_open = |path: &&Path| !path.factors.iter().any(|factor| factor.external);
        let open = self.paths.iter().filter(is_open).count();
        if open > 0 {
            let paths = if open == 1 { "path" } else { "paths" };
            self.questions.push(format!(
                "on {open} {paths} no external retrier is declared: does an SDK, a gateway or a mesh send again too? Declare it as \
                 [[external_retrier]] with name and attempts; attempts = 1 says that nobody does"
            ));
        }
        if self.paths.len() >= MAX_PATHS {
            self.questions.push(format!(
                "only the first {MAX_PATHS} paths were followed: check fewer services at once"
            ));
        }
    }
}

/// The services that no other one calls; where all are called, each of them.
fn outermost(services: &[Service]) -> Vec<&Service> {
    let is_called = |service: &Service| {
        let others = services.iter().filter(|other| other.name != service.name);
        others
            .flat_map(Service::calls)
            .any(|to| to.name() == service.name)
    };
    let outer: Vec<_> = services
        .iter()
        .filter(|service| !is_called(service))
        .collect();
    match outer.is_empty() {
        true => services.iter().collect(),
        false => outer,
    }
}

impl Path {
    fn of(hops: &[Hop<'_>]) -> Self {
        let factors: Vec<_> = hops.iter().flat_map(Hop::factors).collect();
        let outer = hops.iter().map(|hop| hop.service.name.clone());
        let last = hops.last().map(|hop| hop.policy.name().to_owned());
        let again = factors.iter().filter(|factor| factor.attempts > 1);
        Self {
            names: outer.chain(last).collect(),
            calls: factors
                .iter()
                .fold(1, |calls: u64, it| calls.saturating_mul(it.attempts.into())),
            owners: again.map(|factor| factor.by.clone()).collect(),
            factors,
        }
    }
}

impl Hop<'_> {
    fn sends_again(&self) -> bool {
        self.factors().iter().any(|factor| factor.attempts > 1)
    }

    fn factors(&self) -> Vec<Factor> {
        let own = Factor {
            by: self.service.name.clone(),
            external: false,
            attempts: self.policy.plan().attempts(),
        };
        let others = self.service.external(self.policy.name());
        let others = others.map(|(name, attempts)| Factor {
            by: name.to_owned(),
            external: true,
            attempts,
        });
        std::iter::once(own).chain(others).collect()
    }

    /// Where a setting was written, or else where the dependency's table begins.
    fn origin(&self, setting: &str) -> Origin {
        let settings = self.policy.effective();
        let written = settings
            .into_iter()
            .find(|it| it.path == setting && it.origin.is_written());
        written.map_or_else(|| self.policy.origin().clone(), |it| it.origin)
    }

    fn path(&self, setting: &str) -> String {
        format!("dependency.{}.{setting}", self.policy.name())
    }
}

fn owners(hops: &[Hop<'_>], path: &Path) -> Finding {
    let factors: Vec<_> = path
        .factors
        .iter()
        .map(|it| it.attempts.to_string())
        .collect();
    let message = format!(
        "on the path {} each of {} sends again: {} = {} calls at worst",
        path.names.join(" → "),
        path.owners.join(", "),
        factors.join(" × "),
        path.calls
    );
    // The last that could own it is the nearest to what fails, and there the others give way.
    let at = hops
        .iter()
        .find(|hop| hop.policy.plan().attempts() > 1)
        .or(hops.first());
    let origin = at.map_or(Origin::Default, |hop| hop.origin("retry.max_attempts"));
    let setting = at.map_or_else(String::new, |hop| hop.path("retry.max_attempts"));
    let remedy = r#"let one of them own the retry of this path, and write retry = "off" in the policies of the others"#;
    Finding::warning(
        "two-owners-on-a-path",
        &origin,
        setting,
        message,
        remedy.to_owned(),
    )
}

/// The outer service gives up on an attempt while the inner one still works for it.
fn deadline(outer: &Hop<'_>, inner: &Hop<'_>) -> Option<Finding> {
    let (outer_plan, inner_plan) = (outer.policy.plan(), inner.policy.plan());
    let patience = [outer_plan.deadline(), outer_plan.attempt_timeout()]
        .into_iter()
        .flatten()
        .min()?;
    let who = format!(
        "{} waits for {} for up to {patience:?}",
        outer.service.name,
        outer.policy.name()
    );
    let what = match inner_plan.deadline() {
        None => format!("which sets no deadline for {}", inner.policy.name()),
        // What comes from a default gives way to the deadline that travels.
        Some(limit) if limit >= patience && is_written(inner) => {
            format!(
                "which gives {} {limit:?}: deadlines don't shrink inward",
                inner.policy.name()
            )
        }
        Some(_) => return None,
    };
    let remedy = format!(
        "make the deadline shorter than {patience:?}, or let {} wait longer ({})",
        outer.service.name,
        outer.policy.origin()
    );
    let message = format!("{who}, {what}");
    Some(Finding::warning(
        "deadline-does-not-shrink",
        &inner.origin("deadline"),
        inner.path("deadline"),
        message,
        remedy,
    ))
}

fn is_written(hop: &Hop<'_>) -> bool {
    let settings = hop.policy.effective();
    settings
        .iter()
        .any(|it| it.path == "deadline" && it.origin.is_written())
}

fn circle(hops: &[Hop<'_>]) -> Finding {
    let names: Vec<_> = hops.iter().map(|hop| hop.service.name.as_str()).collect();
    let last = hops.last();
    let to = last.map_or("", |hop| hop.policy.name());
    let message = format!(
        "services call each other in a circle: {} → {to}",
        names.join(" → ")
    );
    let origin = last.map_or(Origin::Default, |hop| hop.policy.origin().clone());
    let remedy = "leave the dependency out of [service] calls, if it is not called while a request is served";
    Finding::warning(
        "calls-in-a-circle",
        &origin,
        format!("dependency.{to}"),
        message,
        remedy.to_owned(),
    )
}
