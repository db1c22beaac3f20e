//! Reads a service config in the JSON form of `grpc.service_config.ServiceConfig`.

use std::time::Duration;

use mamparo_core::backoff::MAX_CAP;
use mamparo_core::budget::Throttle;
use mamparo_core::grpc::Codes;
use mamparo_core::{Backoff, InvalidSetting};
use serde_json::Value;

use super::fields::{Fields, Node, note};
use super::service_config::name;
use super::{HedgePlan, MAX_ATTEMPTS, MethodConfig, RetryPlan, ServiceConfig, ServiceConfigError};

/// The largest document that is read, in bytes: far more than a TXT record, from which gRPC may have it, can hold.
const MAX_JSON_LEN: usize = 1 << 20;

/// What is not obeyed, a line each.
type Ignored = Vec<String>;
type Result<T> = std::result::Result<T, ServiceConfigError>;

impl ServiceConfig {
    /// Reads a service config from the JSON that gRPC's other implementations read.
    ///
    /// Obeyed are `methodConfig` with `name`, `timeout`, `retryPolicy` and `hedgingPolicy`, and `retryThrottling`.
    /// Fields that are not known here are left out and told by [`ignored`](Self::ignored), and so is whatever is obeyed in
    /// part. More than 5 attempts are 5.
    ///
    /// # Errors
    ///
    /// Refuses what is no JSON, or larger than 1 MiB; a value of the wrong kind, or out of bounds; a method that is retried and
    /// hedged, or named twice. A config is obeyed as a whole or not at all.
    ///
    /// ```
    /// use mamparo::grpc::ServiceConfig;
    /// use std::time::Duration;
    ///
    /// let config = ServiceConfig::from_json(
    ///     r#"{
    ///         "methodConfig": [{
    ///             "name": [{"service": "shop.Catalog"}],
    ///             "timeout": "1.5s",
    ///             "retryPolicy": {
    ///                 "maxAttempts": 4,
    ///                 "initialBackoff": "0.1s",
    ///                 "maxBackoff": "1s",
    ///                 "backoffMultiplier": 2,
    ///                 "retryableStatusCodes": ["UNAVAILABLE"]
    ///             }
    ///         }],
    ///         "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
    ///     }"#,
    /// )?;
    /// assert_eq!(config.timeout("/shop.Catalog/Search"), Some(Duration::from_millis(1_500)));
    /// assert!(config.ignored().is_empty());
    /// # Ok::<(), mamparo::grpc::ServiceConfigError>(())
    /// ```
    pub fn from_json(json: &str) -> Result<Self> {
        if json.len() > MAX_JSON_LEN {
            let reason = "is larger than the 1 MiB that are read";
            return Err(ServiceConfigError::new("", "", reason));
        }
        let document: Value = serde_json::from_str(json)
            .map_err(|error| ServiceConfigError::new("", "", format!("is no JSON: {error}")))?;
        let mut fields = Node::document(&document).fields()?;
        let mut ignored = Ignored::new();
        let mut builder = Self::builder();
        if let Some(methods) = fields.take("methodConfig")? {
            for method in methods.items()? {
                let (names, config) = method_config(method, &mut ignored)?;
                builder = builder.named(names, config);
            }
        }
        if let Some(throttling) = fields.take("retryThrottling")? {
            builder = builder.throttle(throttle(throttling.fields()?, &mut ignored)?);
        }
        fields.ignore_rest(&mut ignored);
        let config = builder.ignoring(ignored).build();
        config.map_err(|refused| ServiceConfigError::inside("methodConfig", &refused))
    }
}

fn method_config(node: Node<'_>, ignored: &mut Ignored) -> Result<(Vec<String>, MethodConfig)> {
    let mut fields = node.fields()?;
    let mut names = Vec::new();
    if let Some(list) = fields.take("name")? {
        for node in list.items()? {
            names.push(named(node, ignored)?);
        }
    }
    let mut config = MethodConfig::new();
    if let Some(node) = fields.take("timeout")? {
        let timeout = node.duration()?;
        if timeout.is_zero() {
            return node.refuse("must be longer than zero: without a bound, leave it out");
        }
        config = config.within(timeout);
    }
    let retry = fields.take("retryPolicy")?;
    let hedge = fields.take("hedgingPolicy")?;
    match (retry, hedge) {
        (Some(_), Some(hedge)) => {
            return hedge.refuse(
                "stands beside a retryPolicy: a method has one of them, leave the other out",
            );
        }
        (Some(retry), None) => config = config.retried(retry_plan(retry.fields()?, ignored)?),
        (None, Some(hedge)) => config = config.hedged(hedge_plan(hedge.fields()?, ignored)?),
        (None, None) => {}
    }
    if names.is_empty() {
        note(
            ignored,
            format!("{}: names no method, and holds for none", fields.path),
        );
    }
    fields.ignore_rest(ignored);
    Ok((names, config))
}

/// A method's name as the table has it; an empty service stands for all of them.
fn named(node: Node<'_>, ignored: &mut Ignored) -> Result<String> {
    let mut fields = node.fields()?;
    let service = fields.take("service")?;
    let service = service.as_ref().map_or(Ok(""), Node::text)?;
    let method_node = fields.take("method")?;
    let method = method_node.as_ref().map_or(Ok(""), Node::text)?;
    let result = match (service, method) {
        ("", "") => String::new(),
        ("", _) => {
            let reason = "stands without a service: name that too";
            return Err(ServiceConfigError::new(
                &format!("{}.method", fields.path),
                method,
                reason,
            ));
        }
        (service, method) => name(service, method),
    };
    fields.ignore_rest(ignored);
    Ok(result)
}

fn retry_plan(mut fields: Fields<'_>, ignored: &mut Ignored) -> Result<RetryPlan> {
    let attempts = attempts(&mut fields, ignored)?;
    let initial = fields.required("initialBackoff")?.duration()?;
    let longest = fields.required("maxBackoff")?.duration()?;
    let multiplier = fields.required("backoffMultiplier")?.number()?;
    for (name, wait) in [("initialBackoff", initial), ("maxBackoff", longest)] {
        if wait > MAX_CAP {
            note(
                ignored,
                format!("{}.{name}: more than 24 hours are 24 hours", fields.path),
            );
        }
    }
    let codes = codes(fields.take("retryableStatusCodes")?)?;
    let inside = |refused: InvalidSetting| ServiceConfigError::inside(&fields.path, &refused);
    let backoff = Backoff::grpc(initial, longest, multiplier).map_err(inside)?;
    let plan = RetryPlan::new(attempts, backoff, codes).map_err(inside)?;
    fields.ignore_rest(ignored);
    Ok(plan)
}

fn hedge_plan(mut fields: Fields<'_>, ignored: &mut Ignored) -> Result<HedgePlan> {
    let attempts = attempts(&mut fields, ignored)?;
    let delay = fields.take("hedgingDelay")?;
    let delay = delay.map_or(Ok(Duration::ZERO), |node| node.duration())?;
    let codes = codes(fields.take("nonFatalStatusCodes")?)?;
    let plan = HedgePlan::new(attempts, delay, codes);
    let plan = plan.map_err(|refused| ServiceConfigError::inside(&fields.path, &refused))?;
    fields.ignore_rest(ignored);
    Ok(plan)
}

fn attempts(fields: &mut Fields<'_>, ignored: &mut Ignored) -> Result<u32> {
    let node = fields.required("maxAttempts")?;
    let attempts = node.whole()?;
    if attempts > MAX_ATTEMPTS {
        note(
            ignored,
            format!("{}: more than {MAX_ATTEMPTS} are {MAX_ATTEMPTS}", node.path),
        );
    }
    Ok(attempts)
}

fn codes(list: Option<Node<'_>>) -> Result<Codes> {
    let Some(list) = list else {
        return Ok(Codes::NONE);
    };
    list.items()?.map(|node| node.code()).collect()
}

fn throttle(mut fields: Fields<'_>, ignored: &mut Ignored) -> Result<Throttle> {
    let max = fields.required("maxTokens")?.whole()?;
    let ratio = fields.required("tokenRatio")?.number()?;
    let throttle = Throttle::new(max, ratio);
    let throttle =
        throttle.map_err(|refused| ServiceConfigError::inside(&fields.path, &refused))?;
    fields.ignore_rest(ignored);
    Ok(throttle)
}
