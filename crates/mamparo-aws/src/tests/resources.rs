//! Queues, a group of schedules and the table of dead letters, with names that no other test has.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use aws_sdk_sqs::types::QueueAttributeName;
use mamparo_durable::backend::QueueName;
use mamparo_durable::conformance::REDELIVERY_LIMIT;
use mamparo_testkit::private::PrivateMoto;

use crate::{Aws, Settings, SettingsBuilder};

/// A prefix that no other test of this server has.
pub(super) fn prefix() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("test-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Settings for a local server at this address.
pub(super) fn settings(url: &str) -> SettingsBuilder {
    // A server that shares two cores with a build may take its time.
    Settings::builder()
        .endpoint(url)
        .region("eu-west-1")
        .credentials("test", "test")
        .prefix(prefix())
        .redelivery_limit(REDELIVERY_LIMIT)
        .connect_timeout(Duration::from_secs(10))
        .attempt_timeout(Duration::from_secs(20))
        .timeout(Duration::from_secs(60))
}

/// Clients of the shared server, with queues, group and table made.
pub(super) async fn fresh() -> Aws {
    let url = PrivateMoto::shared().await.url();
    let aws = Aws::connect(settings(&url).build().unwrap()).await.unwrap();
    make(&aws).await;
    aws
}

/// Makes what the clients need.
pub(super) async fn make(aws: &Aws) {
    let names = aws.names();
    queue(aws, names.undelivered(), None).await;
    for name in QueueName::ALL {
        let net = queue(aws, names.dead_letters(name), None).await;
        queue(aws, names.queue(name), Some(&net)).await;
    }
    let group = aws.scheduler().create_schedule_group();
    group.name(names.schedule_group()).send().await.unwrap();
    letters(aws).await;
}

/// More often than the limit of ours, and seldom enough for a test to reach it.
pub(super) const NET: u32 = REDELIVERY_LIMIT + 4;

async fn queue(aws: &Aws, name: String, net: Option<&str>) -> String {
    let mut request = aws.sqs().create_queue().queue_name(name);
    if let Some(net) = net {
        let policy = format!(r#"{{"deadLetterTargetArn":"{net}","maxReceiveCount":"{NET}"}}"#);
        request = request.attributes(QueueAttributeName::RedrivePolicy, policy);
    }
    let url = request.send().await.unwrap().queue_url.unwrap();
    let asked = aws.sqs().get_queue_attributes().queue_url(url);
    let asked = asked
        .attribute_names(QueueAttributeName::QueueArn)
        .send()
        .await
        .unwrap();
    asked.attributes.unwrap()[&QueueAttributeName::QueueArn].clone()
}

async fn letters(aws: &Aws) {
    let mut request = aws
        .dynamo()
        .create_table()
        .table_name(aws.names().letters())
        .billing_mode(BillingMode::PayPerRequest);
    for (name, role, kind) in [
        ("queue", KeyType::Hash, ScalarAttributeType::S),
        ("number", KeyType::Range, ScalarAttributeType::N),
    ] {
        let key = KeySchemaElement::builder()
            .attribute_name(name)
            .key_type(role);
        let of = AttributeDefinition::builder()
            .attribute_name(name)
            .attribute_type(kind);
        request = request
            .key_schema(key.build().unwrap())
            .attribute_definitions(of.build().unwrap());
    }
    request.send().await.unwrap();
}

/// Other clients of the same names, that go straight to the shared server.
pub(super) async fn straight(aws: &Aws) -> Aws {
    let url = PrivateMoto::shared().await.url();
    let settings = settings(&url).prefix(aws.names().prefix());
    Aws::connect(settings.build().unwrap()).await.unwrap()
}
