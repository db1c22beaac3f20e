//! Creates what is missing.

use std::time::Duration;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType, SseSpecification, SseType, TableStatus,
    TimeToLiveSpecification,
};
use aws_sdk_sqs::types::QueueAttributeName;
use mamparo_core::clock;
use mamparo_durable::backend::{BackendError, Trouble};

use super::contents::Plan;
use super::difference::{self, Finding, State};
use super::inspect::{self, check};
use super::resource::{Index, Key, Queue, Table};
use crate::connection::{Aws, Service, trouble};

/// As long as a table may take until it can be used: it takes seconds.
const UNTIL_ACTIVE: Duration = Duration::from_secs(300);

/// As long as a change of a queue may take until it is seen.
const UNTIL_TOLD: Duration = Duration::from_secs(75);

/// How often it is asked meanwhile.
const LOOK: Duration = Duration::from_millis(500);

/// Creates what is missing and sets what queues and tables can be told later, then checks everything; `told` hears each step.
///
/// Called twice, the second call changes nothing. Roles and alarms are not made: that is for whoever may hand out rights, by the
/// templates. A table with another key is refused, and nothing is made.
///
/// # Errors
///
/// [`Trouble::Incompatible`] for a table with another key; else what a service answers when it can't be asked.
pub async fn apply(
    aws: &Aws,
    plan: &Plan,
    told: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<Finding>, BackendError> {
    refuse_strangers(aws, plan).await?;
    for table in plan.tables() {
        make_table(aws, plan, &table, told).await?;
    }
    for queue in plan.queues() {
        make_queue(aws, plan, &queue, told).await?;
    }
    make_group(aws, plan, told).await?;
    until_told(aws, plan).await
}

/// SQS says for up to a minute what was there before.
async fn until_told(aws: &Aws, plan: &Plan) -> Result<Vec<Finding>, BackendError> {
    let began = clock::now();
    loop {
        let found = check(aws, plan).await?;
        let settles = found.iter().any(|it| it.remedy == difference::APPLY);
        if !settles || began.elapsed() > UNTIL_TOLD {
            return Ok(found);
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn refuse_strangers(aws: &Aws, plan: &Plan) -> Result<(), BackendError> {
    for table in plan.tables() {
        let Some(seen) = inspect::describe(aws, &table.name).await? else {
            continue;
        };
        let found = difference::of_table(&table, &seen, table.expires);
        if let Some(Finding {
            resource,
            says,
            remedy,
            ..
        }) = found.into_iter().find(|it| it.state == State::Stranger)
        {
            let line = format!("{resource} {says}: {remedy}");
            return Err(BackendError::new(Trouble::Incompatible, line));
        }
    }
    Ok(())
}

async fn make_table(
    aws: &Aws,
    plan: &Plan,
    table: &Table,
    told: &mut (dyn FnMut(&str) + Send),
) -> Result<(), BackendError> {
    let name = &table.name;
    if inspect::describe(aws, name).await?.is_none() {
        told(&format!("table {name}: creating"));
        create_table(aws, plan, table).await?;
    }
    until_active(aws, name).await?;
    let Some(attribute) = table.expires else {
        return Ok(());
    };
    if inspect::expires(aws, name).await?.is_some() {
        return Ok(());
    }
    told(&format!("table {name}: forgets by {attribute}"));
    let spec = TimeToLiveSpecification::builder()
        .attribute_name(attribute)
        .enabled(true);
    let asked = aws.dynamo().update_time_to_live().table_name(name);
    let asked = asked
        .time_to_live_specification(built(spec.build())?)
        .send()
        .await;
    asked
        .map(drop)
        .map_err(|error| trouble(Service::DynamoDb, &format!("table {name}"), error))
}

pub(super) async fn create_table(
    aws: &Aws,
    plan: &Plan,
    table: &Table,
) -> Result<(), BackendError> {
    let mut request = aws
        .dynamo()
        .create_table()
        .table_name(&table.name)
        .billing_mode(BillingMode::PayPerRequest)
        .deletion_protection_enabled(true)
        .set_key_schema(Some(schema(table.key)?));
    for it in table.attributes() {
        let kind = ScalarAttributeType::from(it.kind.as_str());
        let definition = AttributeDefinition::builder().attribute_name(it.name);
        let definition = definition.attribute_type(kind).build();
        request = request.attribute_definitions(built(definition)?);
    }
    for index in &table.indexes {
        request = request.global_secondary_indexes(global(index)?);
    }
    if let Some(key) = plan.kms_key() {
        let sse = SseSpecification::builder().enabled(true);
        let sse = sse.sse_type(SseType::Kms).kms_master_key_id(key);
        request = request.sse_specification(sse.build());
    }
    match request.send().await {
        Ok(_) => Ok(()),
        // Another was faster.
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|it| it.is_resource_in_use_exception()) =>
        {
            Ok(())
        }
        Err(error) => Err(trouble(
            Service::DynamoDb,
            &format!("table {}", table.name),
            error,
        )),
    }
}

fn schema(key: Key) -> Result<Vec<KeySchemaElement>, BackendError> {
    let kinds = [KeyType::Hash, KeyType::Range];
    let elements = key.attributes().zip(kinds).map(|(it, kind)| {
        let element = KeySchemaElement::builder().attribute_name(it.name);
        built(element.key_type(kind).build())
    });
    elements.collect()
}

fn global(index: &Index) -> Result<GlobalSecondaryIndex, BackendError> {
    let includes = index.includes.iter().map(|it| (*it).to_owned());
    let projection = Projection::builder()
        .projection_type(ProjectionType::Include)
        .set_non_key_attributes(Some(includes.collect()));
    let global = GlobalSecondaryIndex::builder()
        .index_name(index.name)
        .set_key_schema(Some(schema(index.key)?))
        .projection(projection.build());
    built(global.build())
}

/// What is described in this crate has all its parts.
fn built<T>(built: Result<T, BuildError>) -> Result<T, BackendError> {
    built.map_err(|error| BackendError::new(Trouble::Refused, error.to_string()))
}

async fn until_active(aws: &Aws, name: &str) -> Result<(), BackendError> {
    let began = clock::now();
    while began.elapsed() < UNTIL_ACTIVE {
        let seen = inspect::describe(aws, name).await?;
        if seen.is_some_and(|it| it.table_status == Some(TableStatus::Active)) {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    let line =
        format!("table {name} is not ACTIVE after 5 minutes: run `mamparo aws apply` again later");
    Err(BackendError::new(Trouble::Unavailable, line))
}

async fn make_queue(
    aws: &Aws,
    plan: &Plan,
    queue: &Queue,
    told: &mut (dyn FnMut(&str) + Send),
) -> Result<(), BackendError> {
    let name = &queue.name;
    let url = match inspect::queue_url(aws, name).await? {
        Some(url) => url,
        None => {
            told(&format!("queue {name}: creating"));
            create_queue(aws, name).await?
        }
    };
    // Only what is there has an ARN, which says the account that the policies name.
    let (is, place) = inspect::attributes(aws, name, &url).await?;
    let should = difference::attributes(plan, &place, queue);
    let differing = difference::otherwise(should, &is);
    if differing.is_empty() {
        return Ok(());
    }
    let mut names: Vec<_> = differing.keys().map(QueueAttributeName::as_str).collect();
    names.sort_unstable();
    told(&format!("queue {name}: setting {}", names.join(", ")));
    let asked = aws.sqs().set_queue_attributes().queue_url(&url);
    let asked = asked.set_attributes(Some(differing)).send().await;
    asked
        .map(drop)
        .map_err(|error| trouble(Service::Sqs, &format!("queue {name}"), error))
}

async fn create_queue(aws: &Aws, name: &str) -> Result<String, BackendError> {
    let asked = aws.sqs().create_queue().queue_name(name).send().await;
    let said = asked.map_err(|error| {
        if error
            .as_service_error()
            .is_some_and(|it| it.is_queue_deleted_recently())
        {
            let line = format!(
                "queue {name} was deleted within the last minute: wait a minute, and run it again"
            );
            return BackendError::new(Trouble::Unavailable, line).from_source(error);
        }
        trouble(Service::Sqs, &format!("queue {name}"), error)
    })?;
    let nameless = || {
        BackendError::new(
            Trouble::Unavailable,
            "SQS made a queue and did not say where",
        )
    };
    said.queue_url.ok_or_else(nameless)
}

async fn make_group(
    aws: &Aws,
    plan: &Plan,
    told: &mut (dyn FnMut(&str) + Send),
) -> Result<(), BackendError> {
    if inspect::group(aws, plan).await?.is_some() {
        return Ok(());
    }
    let name = plan.group().name;
    told(&format!("schedule group {name}: creating"));
    let asked = aws
        .scheduler()
        .create_schedule_group()
        .name(&name)
        .send()
        .await;
    match asked {
        Ok(_) => Ok(()),
        // Another was faster.
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|it| it.is_conflict_exception()) =>
        {
            Ok(())
        }
        Err(error) => Err(trouble(
            Service::Scheduler,
            &format!("schedule group {name}"),
            error,
        )),
    }
}
