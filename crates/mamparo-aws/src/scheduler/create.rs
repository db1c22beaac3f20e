//! The requests to the service.

use aws_sdk_scheduler::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_scheduler::operation::create_schedule::CreateScheduleError;
use aws_sdk_scheduler::types::{
    ActionAfterCompletion, DeadLetterConfig, FlexibleTimeWindow, FlexibleTimeWindowMode,
    RetryPolicy, Target,
};
use mamparo_durable::backend::{BackendError, Trouble};

use crate::Aws;
use crate::connection::{Service, trouble};

/// As often the service tries to deliver a fire, and for so many seconds.
pub(crate) const DELIVERY_RETRIES: i32 = 5;
pub(crate) const DELIVERY_SECONDS: i32 = 3_600;

/// As many pages of schedules are counted, of so many each.
const PAGES: usize = 10;
const PAGE: i32 = 100;

/// A schedule, as the service knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) expression: String,
    pub(super) input: String,
}

/// What a schedule delivers to, by whom, and where what can't be delivered goes.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) queue: String,
    pub(super) role: String,
    pub(super) undelivered: String,
}

/// What came of asking for a schedule.
#[derive(Debug)]
pub(super) enum Asked {
    /// It exists now.
    Made,
    /// One of that name exists, or is just being made or deleted.
    Taken,
    /// The service says that its instant is past.
    Past,
}

/// Asks for a schedule once.
///
/// The SDK gives each call a token of its own, so that a try which it repeats after a timeout finds its own work and not a conflict.
pub(super) async fn make(
    aws: &Aws,
    known: &Known,
    to: &Destination,
) -> Result<Asked, BackendError> {
    let asked = aws
        .scheduler()
        .create_schedule()
        .name(&known.name)
        .group_name(aws.names().schedule_group())
        .schedule_expression(&known.expression)
        .schedule_expression_timezone("UTC")
        .flexible_time_window(exactly()?)
        .action_after_completion(ActionAfterCompletion::Delete)
        .target(target(known, to)?)
        .send()
        .await;
    match asked {
        Ok(_) => Ok(Asked::Made),
        Err(SdkError::ServiceError(said)) if said.err().is_conflict_exception() => Ok(Asked::Taken),
        Err(SdkError::ServiceError(said)) if is_past(said.err()) => Ok(Asked::Past),
        Err(error) => Err(trouble(Service::Scheduler, &about(aws), error)),
    }
}

/// Its clock may be ahead of ours.
fn is_past(error: &CreateScheduleError) -> bool {
    error.is_validation_exception() && error.message().is_some_and(|said| said.contains("past"))
}

fn exactly() -> Result<FlexibleTimeWindow, BackendError> {
    let window = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off);
    window.build().map_err(unbuilt)
}

fn target(known: &Known, to: &Destination) -> Result<Target, BackendError> {
    let retry = RetryPolicy::builder()
        .maximum_retry_attempts(DELIVERY_RETRIES)
        .maximum_event_age_in_seconds(DELIVERY_SECONDS);
    Target::builder()
        .arn(&to.queue)
        .role_arn(&to.role)
        .input(&known.input)
        .retry_policy(retry.build())
        .dead_letter_config(DeadLetterConfig::builder().arn(&to.undelivered).build())
        .build()
        .map_err(unbuilt)
}

/// Reads a schedule back; `None` if there is none.
pub(super) async fn read(aws: &Aws, name: &str) -> Result<Option<Known>, BackendError> {
    let asked = aws
        .scheduler()
        .get_schedule()
        .name(name)
        .group_name(aws.names().schedule_group())
        .send()
        .await;
    match asked {
        Ok(found) => Ok(Some(Known {
            name: name.to_owned(),
            expression: found.schedule_expression.unwrap_or_default(),
            input: found
                .target
                .and_then(|target| target.input)
                .unwrap_or_default(),
        })),
        Err(SdkError::ServiceError(said))
            if said.err().is_resource_not_found_exception()
                && !lacks_group(said.err().message()) =>
        {
            Ok(None)
        }
        Err(error) => Err(trouble(Service::Scheduler, &about(aws), error)),
    }
}

/// Deletes a schedule; says whether there was one.
pub(super) async fn delete(aws: &Aws, name: &str) -> Result<bool, BackendError> {
    let asked = aws
        .scheduler()
        .delete_schedule()
        .name(name)
        .group_name(aws.names().schedule_group())
        .send()
        .await;
    match asked {
        Ok(_) => Ok(true),
        Err(SdkError::ServiceError(said)) if said.err().is_resource_not_found_exception() => {
            Ok(false)
        }
        // It is just being made or deleted by another; deleting need not be done for the rest to be right.
        Err(SdkError::ServiceError(said)) if said.err().is_conflict_exception() => Ok(false),
        Err(error) => Err(trouble(Service::Scheduler, &about(aws), error)),
    }
}

/// Counts the schedules, but no more than a thousand.
pub(crate) async fn count(aws: &Aws) -> Result<u64, BackendError> {
    let mut pages = aws
        .scheduler()
        .list_schedules()
        .group_name(aws.names().schedule_group())
        .max_results(PAGE)
        .into_paginator()
        .send();
    let mut count = 0;
    for _ in 0..PAGES {
        let Some(page) = pages.next().await else {
            break;
        };
        let page = page.map_err(|error| trouble(Service::Scheduler, &about(aws), error))?;
        count += page.schedules.len() as u64;
    }
    Ok(count)
}

/// The same error tells of a schedule and of a group that is not there.
fn lacks_group(message: Option<&str>) -> bool {
    // A schedule's name has no space in it.
    message.is_some_and(|said| said.to_ascii_lowercase().contains("schedule group "))
}

fn about(aws: &Aws) -> String {
    format!("schedule group {}", aws.names().schedule_group())
}

fn unbuilt(error: impl std::error::Error + Send + Sync + 'static) -> BackendError {
    BackendError::new(
        Trouble::Refused,
        "a request to EventBridge Scheduler lacks something",
    )
    .from_source(error)
}
