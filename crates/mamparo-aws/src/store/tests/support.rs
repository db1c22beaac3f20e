//! Tables of their own for each test, and an ear at every request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextMut, BeforeTransmitInterceptorContextMut,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType,
};
use mamparo_core::clock::SystemClock;
use mamparo_durable::machine::{
    AuditEvent, Cause, Progress, Record, State, Terms, TransactionId, Utc, Write,
};
use mamparo_durable::policy::Policy;
use mamparo_testkit::private::PrivateMoto;

use crate::store::DynamoStore;
use crate::store::schema::{BY_STATE, ID, PART, PLACE, PROJECTED, SERIAL, SINCE, SLOT};
use crate::{Aws, Settings, SettingsBuilder};

/// A store on fresh tables.
pub(crate) async fn fresh() -> DynamoStore {
    heard(&Ear::default()).await
}

/// A store on fresh tables, each of whose requests passes by an ear.
pub(crate) async fn heard(ear: &Ear) -> DynamoStore {
    let server = PrivateMoto::shared().await;
    let aws = connect(settings(&server.url()), ear).await;
    make_tables(&aws).await;
    ear.forget();
    DynamoStore::new(aws)
}

/// A prefix that no other test of this server has.
pub(crate) fn settings(url: &str) -> SettingsBuilder {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Settings::builder()
        .region("eu-west-1")
        .endpoint(url)
        .credentials("key", "secret")
        .prefix(format!("test-{}-{number}", std::process::id()))
        // A server that shares two cores with a build may take its time.
        .attempt_timeout(Duration::from_secs(20))
        .timeout(Duration::from_secs(60))
}

pub(crate) async fn connect(settings: SettingsBuilder, ear: &Ear) -> Aws {
    let heard = SharedInterceptor::new(ear.clone());
    Aws::connect_heard(settings.build().unwrap(), Some(heard))
        .await
        .unwrap()
}

pub(crate) async fn make_tables(aws: &Aws) {
    make_tables_with(aws, [ID, PART], &PROJECTED).await;
}

/// Tables of which the first has this key, and in its index these attributes.
pub(crate) async fn make_tables_with(aws: &Aws, [partition, sort]: [&str; 2], projected: &[&str]) {
    let index = GlobalSecondaryIndex::builder()
        .index_name(BY_STATE)
        .set_key_schema(Some(key(PLACE, SINCE)))
        .projection(
            Projection::builder()
                .projection_type(ProjectionType::Include)
                .set_non_key_attributes(Some(projected.iter().map(|&it| it.into()).collect()))
                .build(),
        )
        .build()
        .unwrap();
    let text = ScalarAttributeType::S;
    let table = aws
        .dynamo()
        .create_table()
        .table_name(aws.names().transactions())
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(key(partition, sort)))
        .attribute_definitions(attribute(partition, text.clone()))
        .attribute_definitions(attribute(sort, text.clone()))
        .attribute_definitions(attribute(PLACE, text.clone()))
        .attribute_definitions(attribute(SINCE, ScalarAttributeType::N))
        .global_secondary_indexes(index);
    table.send().await.unwrap();
    let outbox = aws
        .dynamo()
        .create_table()
        .table_name(aws.names().outbox())
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(key(SLOT, SERIAL)))
        .attribute_definitions(attribute(SLOT, text.clone()))
        .attribute_definitions(attribute(SERIAL, text));
    outbox.send().await.unwrap();
}

fn key(partition: &str, sort: &str) -> Vec<KeySchemaElement> {
    [(partition, KeyType::Hash), (sort, KeyType::Range)]
        .map(|(name, kind)| {
            let element = KeySchemaElement::builder().attribute_name(name);
            element.key_type(kind).build().unwrap()
        })
        .to_vec()
}

fn attribute(name: &str, kind: ScalarAttributeType) -> AttributeDefinition {
    let attribute = AttributeDefinition::builder().attribute_name(name);
    attribute.attribute_type(kind).build().unwrap()
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is done, and its answer is lost on the way.
    AnswerLost,
    /// It is not done: the service is down.
    Down,
    /// It is not done: another transaction is at work on the same item.
    Conflict,
    /// It is not done: the same request is still at work.
    InProgress,
    /// It is not done: the session of these credentials is over.
    Expired,
    /// It is not done: the clock is wrong by an hour.
    Skewed,
}

/// Hears every request, and may tamper with what comes of it. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ear(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    counts: BTreeMap<String, usize>,
    faults: VecDeque<(String, Fault)>,
}

impl Ear {
    /// Lets the next request of that name meet with this.
    pub(crate) fn fault(&self, name: &str, fault: Fault) {
        self.0
            .lock()
            .unwrap()
            .faults
            .push_back((name.to_owned(), fault));
    }

    /// Returns how many faults have not come yet.
    pub(crate) fn faults_left(&self) -> usize {
        self.0.lock().unwrap().faults.len()
    }

    /// Returns how many requests there were, by name.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        self.0.lock().unwrap().counts.clone()
    }

    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap() = Heard::default();
    }
}

/// What a request is to meet with, kept beside it until its answer is there.
#[derive(Clone, Copy, Debug)]
struct Meets(Fault);

impl Intercept for Ear {
    fn name(&self) -> &'static str {
        "Ear"
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request_mut();
        let target = request.headers().get("x-amz-target").unwrap_or("");
        let name = match target.rsplit_once('.') {
            Some((_, name)) => name.to_owned(),
            None => format!("{} schedule", request.method()),
        };
        let mut heard = self.0.lock().unwrap();
        *heard.counts.entry(name.clone()).or_default() += 1;
        let fault = match heard.faults.front() {
            Some((at, fault)) if *at == name => Some(*fault),
            _ => None,
        };
        if let Some(fault) = fault {
            heard.faults.pop_front();
            if fault != Fault::AnswerLost {
                request
                    .headers_mut()
                    .insert("x-amz-target", "DynamoDB_20120810.ListTables");
                request.headers_mut().insert("content-length", "2");
                *request.body_mut() = "{}".into();
            }
        }
        drop(heard);
        config
            .interceptor_state()
            .store_put(Meeting(fault.map(Meets)));
        Ok(())
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(Meeting(Some(Meets(fault)))) = config.load::<Meeting>() else {
            return Ok(());
        };
        let (status, body) = answer(*fault);
        let response = context.response_mut();
        *response.status_mut() = status.try_into()?;
        *response.body_mut() = body.into();
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
struct Meeting(Option<Meets>);

impl aws_smithy_types::config_bag::Storable for Meeting {
    type Storer = aws_smithy_types::config_bag::StoreReplace<Self>;
}

const fn answer(fault: Fault) -> (u16, &'static str) {
    match fault {
        Fault::AnswerLost | Fault::Down => {
            (500, r#"{"__type":"InternalServerError","message":"down"}"#)
        }
        Fault::Conflict => (
            400,
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled",
                "CancellationReasons":[{"Code":"TransactionConflict","Message":"busy"},{"Code":"None"}]}"#,
        ),
        Fault::InProgress => (
            400,
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionInProgressException","Message":"busy"}"#,
        ),
        Fault::Expired => (
            400,
            r#"{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"The security token is expired"}"#,
        ),
        Fault::Skewed => (
            400,
            r#"{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired: 10:00 is earlier than 10:55"}"#,
        ),
    }
}

pub(crate) fn now() -> Utc {
    Utc::of(&SystemClock)
}

pub(crate) fn id(name: &str) -> TransactionId {
    TransactionId::new(name).unwrap()
}

pub(crate) fn record(name: &str) -> Record {
    let terms = Terms::new(id(name), "payment", &Policy::default(), now());
    Record::in_flight(Terms {
        dependency: Some("psp".into()),
        ..terms
    })
}

/// As after a refusal of the first attempt.
pub(crate) fn waiting(record: &Record, state: State, fire_at: Utc) -> Progress {
    Progress {
        state,
        attempt_next: Some(2),
        next_fire_at: Some(fire_at),
        ..record.progress.clone()
    }
}

pub(crate) fn transition(from: &Progress, to: &Progress, cause: Cause) -> Write {
    let event = AuditEvent {
        attempt: to.attempt_next.unwrap_or(to.attempt_current),
        seq: to.schedule_seq,
        fire_at: to.next_fire_at,
        ..AuditEvent::new(to.updated_at, Some(from.state), to.state, cause)
    };
    Write::new(from.expect(), to.clone(), event)
}
