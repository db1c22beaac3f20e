//! Looks at what is there.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{TableDescription, TimeToLiveStatus};
use aws_sdk_scheduler::types::ScheduleGroupState;
use aws_sdk_sqs::types::QueueAttributeName;
use mamparo_durable::backend::{BackendError, Trouble};

use super::contents::Plan;
use super::difference::{self, Finding, State};
use super::place::Place;
use super::resource::{Queue, Table};
use crate::connection::{Aws, Service, trouble};

/// Compares what is there with the plan, and changes nothing: a [`Finding`] for each resource that is as planned, and for each
/// difference.
///
/// # Errors
///
/// What a service answers when it can't be asked: no credentials, a wrong region, no right to look.
pub async fn check(aws: &Aws, plan: &Plan) -> Result<Vec<Finding>, BackendError> {
    let mut found = Vec::new();
    for table in plan.tables() {
        found.extend(check_table(aws, &table).await?);
    }
    for queue in plan.queues() {
        found.extend(check_queue(aws, plan, &queue).await?);
    }
    found.push(check_group(aws, plan).await?);
    for role in [plan.engine_role(), plan.scheduler_role()] {
        let says = "was not looked at, since that needs rights on IAM";
        let remedy = "compare it with `mamparo aws plan --format json`";
        let resource = format!("role {role}");
        found.push(Finding::new(resource, State::Unseen, says, remedy));
    }
    Ok(found)
}

async fn check_table(aws: &Aws, table: &Table) -> Result<Vec<Finding>, BackendError> {
    let Some(seen) = describe(aws, &table.name).await? else {
        return Ok(vec![Finding::missing(format!("table {}", table.name))]);
    };
    let expires = expires(aws, &table.name).await?;
    Ok(difference::of_table(table, &seen, expires.as_deref()))
}

/// Reads what a table is; `None` if there is none.
pub(super) async fn describe(
    aws: &Aws,
    name: &str,
) -> Result<Option<TableDescription>, BackendError> {
    let asked = aws.dynamo().describe_table().table_name(name).send().await;
    match asked {
        Ok(said) => Ok(said.table),
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|it| it.is_resource_not_found_exception()) =>
        {
            Ok(None)
        }
        Err(error) => Err(trouble(Service::DynamoDb, &format!("table {name}"), error)),
    }
}

/// Reads by which attribute a table forgets.
pub(super) async fn expires(aws: &Aws, name: &str) -> Result<Option<String>, BackendError> {
    let asked = aws
        .dynamo()
        .describe_time_to_live()
        .table_name(name)
        .send()
        .await;
    let said =
        asked.map_err(|error| trouble(Service::DynamoDb, &format!("table {name}"), error))?;
    let expires = said.time_to_live_description.filter(|it| {
        let on = [TimeToLiveStatus::Enabled, TimeToLiveStatus::Enabling];
        it.time_to_live_status()
            .is_some_and(|status| on.contains(status))
    });
    Ok(expires.and_then(|it| it.attribute_name))
}

async fn check_queue(aws: &Aws, plan: &Plan, queue: &Queue) -> Result<Vec<Finding>, BackendError> {
    let Some(url) = queue_url(aws, &queue.name).await? else {
        return Ok(vec![Finding::missing(format!("queue {}", queue.name))]);
    };
    let (is, place) = attributes(aws, &queue.name, &url).await?;
    let should = difference::attributes(plan, &place, queue);
    Ok(difference::of_queue(queue, should, &is))
}

/// Finds a queue; `None` if there is none.
pub(super) async fn queue_url(aws: &Aws, name: &str) -> Result<Option<String>, BackendError> {
    let asked = aws.sqs().get_queue_url().queue_name(name).send().await;
    match asked {
        Ok(said) => Ok(said.queue_url),
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|it| it.is_queue_does_not_exist()) =>
        {
            Ok(None)
        }
        Err(error) => Err(trouble(Service::Sqs, &format!("queue {name}"), error)),
    }
}

/// Reads what a queue is, and where.
pub(super) async fn attributes(
    aws: &Aws,
    name: &str,
    url: &str,
) -> Result<(HashMap<QueueAttributeName, String>, Place), BackendError> {
    let asked = aws.sqs().get_queue_attributes().queue_url(url);
    let asked = asked.attribute_names(QueueAttributeName::All).send().await;
    let said = asked.map_err(|error| trouble(Service::Sqs, &format!("queue {name}"), error))?;
    let is = said.attributes.unwrap_or_default();
    let place = is
        .get(&QueueAttributeName::QueueArn)
        .and_then(|arn| Place::of(arn));
    let nowhere = || {
        BackendError::new(
            Trouble::Unavailable,
            format!("SQS does not say where queue {name} is"),
        )
    };
    let place = place.ok_or_else(nowhere)?;
    Ok((is, place))
}

async fn check_group(aws: &Aws, plan: &Plan) -> Result<Finding, BackendError> {
    let resource = format!("schedule group {}", plan.group().name);
    Ok(match group(aws, plan).await? {
        None => Finding::missing(resource),
        Some(ScheduleGroupState::Active) => Finding::good(resource),
        Some(state) => {
            let says = format!("is {}, with all schedules in it", state.as_str());
            let remedy =
                "wait until it is gone, then run `mamparo aws apply` and `mamparo reconcile`";
            Finding::new(resource, State::Differs, says, remedy)
        }
    })
}

/// Reads how it stands with the group; `None` if there is none.
pub(super) async fn group(
    aws: &Aws,
    plan: &Plan,
) -> Result<Option<ScheduleGroupState>, BackendError> {
    let name = plan.group().name;
    let asked = aws
        .scheduler()
        .get_schedule_group()
        .name(&name)
        .send()
        .await;
    match asked {
        Ok(said) => Ok(said.state),
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|it| it.is_resource_not_found_exception()) =>
        {
            Ok(None)
        }
        Err(error) => Err(trouble(
            Service::Scheduler,
            &format!("schedule group {name}"),
            error,
        )),
    }
}
