//! All that a check found out.

use std::time::Duration;

use mamparo::policy::{Plan, Policy, Segment};
use serde::Serialize;

use super::chain::Chain;
use super::service::Service;
use crate::policies::Finding;

/// All that a check found out.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub(super) errors: usize,
    pub(super) warnings: usize,
    pub(super) findings: Vec<Finding>,
    pub(super) services: Vec<Checked>,
    pub(super) paths: Vec<super::chain::Path>,
    pub(super) questions: Vec<String>,
}

/// A service.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    pub(super) name: String,
    pub(super) is_refused: bool,
    pub(super) dependencies: Vec<Dependency>,
}

/// A dependency's budget of time.
#[derive(Debug, Serialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

/// What an operation costs.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) max_attempts: u32,
    pub(crate) side_by_side: bool,
    pub(crate) attempt_timeout_ms: Option<f64>,
    pub(crate) waits_ms: f64,
    pub(crate) potential_ms: Option<f64>,
    pub(crate) deadline_ms: Option<f64>,
    pub(crate) attempts_that_fit: Option<u32>,
    pub(crate) split: Option<Vec<Part>>,
    pub(crate) worst_case_ms: Option<f64>,
    #[serde(skip)]
    pub(crate) plan: Plan,
}

/// A part of the deadline.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    what: &'static str,
    ms: f64,
}

impl Found {
    pub(super) fn of(services: &[Service]) -> Self {
        let chain = Chain::of(services);
        let mut findings = findings(services);
        findings.extend(chain.findings);
        let errors = findings.iter().filter(|finding| finding.is_error()).count();
        Self {
            errors,
            warnings: findings.len() - errors,
            findings,
            services: services.iter().map(Checked::of).collect(),
            paths: chain.paths,
            questions: chain.questions,
        }
    }
}

/// What is wrong with each service. A variable of the environment that only some of several don't know is meant for another.
fn findings(services: &[Service]) -> Vec<Finding> {
    let is_variable = |finding: &Finding| finding.code == "unknown-variable";
    let known_nowhere = |finding: &Finding| {
        services.iter().all(|service| {
            service
                .findings
                .iter()
                .any(|other| is_variable(other) && other.environment == finding.environment)
        })
    };
    let mut findings: Vec<Finding> = Vec::new();
    for finding in services.iter().flat_map(|service| &service.findings) {
        let told = is_variable(finding)
            && findings
                .iter()
                .any(|other| other.environment == finding.environment && is_variable(other));
        if !told && (!is_variable(finding) || known_nowhere(finding)) {
            findings.push(finding.clone());
        }
    }
    findings
}

impl Checked {
    fn of(service: &Service) -> Self {
        let dependency = |(name, policy): (&str, &Policy)| Dependency {
            name: name.to_owned(),
            figures: Figures::of(policy),
        };
        Self {
            name: service.name.clone(),
            is_refused: service.policies.is_none(),
            dependencies: service.dependencies().map(dependency).collect(),
        }
    }
}

impl Figures {
    pub(crate) fn of(policy: &Policy) -> Self {
        let plan = policy.plan();
        let parts = plan
            .segments()
            .map(|parts| parts.into_iter().filter_map(Part::of).collect());
        Self {
            max_attempts: plan.attempts(),
            side_by_side: plan.is_hedged(),
            attempt_timeout_ms: plan.attempt_timeout().map(ms),
            waits_ms: ms(plan.waits()),
            potential_ms: plan.potential().map(ms),
            deadline_ms: plan.deadline().map(ms),
            attempts_that_fit: plan.fitting(),
            split: parts,
            worst_case_ms: policy.worst_case().time.map(ms),
            plan,
        }
    }
}

impl Part {
    fn of(segment: Segment) -> Option<Self> {
        let (what, time) = match segment {
            Segment::Attempt(time) => ("attempt", time),
            Segment::Wait(time) => ("wait", time),
            Segment::Left(time) => ("left", time),
            _ => return None,
        };
        Some(Self { what, ms: ms(time) })
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
