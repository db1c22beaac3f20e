//! Which calls are sent again, and when: as options or a service config say, and the method's own description.

use std::path::Path;

use mamparo::grpc::{HedgePlan, MethodConfig, RetryPlan, ServiceConfig};
use mamparo_core::grpc::{Codes, Grpc};
use mamparo_core::{Backoff, InvalidSetting};
use prost_reflect::MethodDescriptor;
use prost_reflect::prost_types::method_options::IdempotencyLevel;

use crate::args::{CallArgs, Delay};
use crate::call::about::Refused;
use crate::call::stack::{ATTEMPTS, Bare, HEDGED_ATTEMPTS};

/// What was typed of it.
#[derive(Debug)]
pub(super) enum Plan {
    /// A config of gRPC's own.
    Config(ServiceConfig),
    /// Options, which say more of a method that is idempotent.
    Options {
        attempts: Option<u32>,
        hedge: Option<Delay>,
        idempotent: bool,
    },
}

impl Plan {
    pub(super) fn new(args: &CallArgs) -> Result<Self, Refused> {
        match &args.service_config {
            Some(path) => config(path).map(Self::Config),
            None => Ok(Self::Options {
                attempts: args.attempts,
                hedge: args.hedge,
                idempotent: args.idempotent,
            }),
        }
    }

    /// Tells whether a method may take effect twice without harm, by what was typed or by its description.
    pub(super) fn is_idempotent(&self, method: &MethodDescriptor) -> bool {
        let options = method.method_descriptor_proto().options.as_ref();
        let level = options.map(|options| options.idempotency_level());
        let declared = matches!(
            level,
            Some(IdempotencyLevel::NoSideEffects | IdempotencyLevel::Idempotent)
        );
        declared
            || matches!(
                self,
                Self::Options {
                    idempotent: true,
                    ..
                }
            )
    }

    /// Sets a stack up for a method.
    pub(super) fn apply(
        &self,
        stack: Bare<Grpc>,
        method: &MethodDescriptor,
    ) -> Result<Bare<Grpc>, InvalidSetting> {
        let (attempts, hedge) = match self {
            Self::Config(config) => return Ok(stack.service_config(config)),
            // What is not idempotent has the stack's own rules.
            Self::Options { .. } if !self.is_idempotent(method) => return Ok(stack),
            Self::Options {
                attempts, hedge, ..
            } => (attempts, hedge),
        };
        let config = MethodConfig::new();
        let config = match (attempts, hedge) {
            (Some(1), _) => config.sent_once(),
            (attempts, Some(Delay(delay))) => {
                let attempts = attempts.unwrap_or(HEDGED_ATTEMPTS);
                config.hedged(HedgePlan::new(attempts, *delay, Codes::UNAVAILABLE)?)
            }
            (attempts, None) => retried(attempts.unwrap_or(ATTEMPTS))?,
        };
        let config = ServiceConfig::builder().all(config);
        Ok(stack.service_config(&config.build()?))
    }
}

/// Sends again what is unavailable, and also where nobody knows what became of it.
fn retried(attempts: u32) -> Result<MethodConfig, InvalidSetting> {
    let plan = RetryPlan::new(attempts, Backoff::default(), Codes::UNAVAILABLE)?;
    Ok(MethodConfig::new().retried(plan))
}

/// Lets the questions that come before a call be sent again: they change nothing.
pub(super) fn asking(stack: Bare<Grpc>) -> Result<Bare<Grpc>, InvalidSetting> {
    let config = ServiceConfig::builder().all(retried(ATTEMPTS)?);
    Ok(stack.service_config(&config.build()?))
}

fn config(path: &Path) -> Result<ServiceConfig, Refused> {
    let name = path.display();
    let json = std::fs::read_to_string(path);
    let json = json.map_err(|error| Refused(format!("{name} can't be read: {error}")))?;
    ServiceConfig::from_json(&json)
        .map_err(|error| Refused(format!("{name} is no service config: {error}")))
}
