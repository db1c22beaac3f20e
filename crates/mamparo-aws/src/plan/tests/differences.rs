use std::collections::HashMap;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, GlobalSecondaryIndexDescription, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType, TableDescription, TableStatus,
};
use aws_sdk_sqs::types::QueueAttributeName;

use crate::plan::difference::{attributes, of_queue, of_table};
use crate::plan::{Finding, Place, Plan, Queue, State, Table};

fn plan() -> Plan {
    Plan::new("shop").unwrap()
}

fn transactions() -> Table {
    plan().tables().remove(0)
}

fn element(name: &str, kind: KeyType) -> KeySchemaElement {
    KeySchemaElement::builder()
        .attribute_name(name)
        .key_type(kind)
        .build()
        .unwrap()
}

fn key(partition: &str, sort: &str) -> Vec<KeySchemaElement> {
    vec![
        element(partition, KeyType::Hash),
        element(sort, KeyType::Range),
    ]
}

/// A table as planned, but for what is asked.
fn described(part: &str, includes: &[&str], index: bool) -> TableDescription {
    let table = transactions();
    let definitions = table.attributes().into_iter().map(|it| {
        let kind = ScalarAttributeType::from(it.kind.as_str());
        AttributeDefinition::builder()
            .attribute_name(it.name)
            .attribute_type(kind)
            .build()
            .unwrap()
    });
    let other = AttributeDefinition::builder()
        .attribute_name("other")
        .attribute_type(ScalarAttributeType::N);
    let definitions = definitions.chain([other.build().unwrap()]);
    let includes = includes.iter().map(|it| (*it).to_owned()).collect();
    let projection = Projection::builder().projection_type(ProjectionType::Include);
    let of_index = GlobalSecondaryIndexDescription::builder()
        .index_name(table.indexes[0].name)
        .set_key_schema(Some(key("place", "since")))
        .projection(projection.set_non_key_attributes(Some(includes)).build())
        .build();
    TableDescription::builder()
        .table_status(TableStatus::Active)
        .set_key_schema(Some(key("id", part)))
        .set_attribute_definitions(Some(definitions.collect()))
        .set_global_secondary_indexes(index.then(|| vec![of_index]))
        .build()
}

fn said(found: &[Finding]) -> Vec<(State, &str)> {
    found
        .iter()
        .map(|it| (it.state, it.says.as_str()))
        .collect()
}

#[test]
fn a_table_as_planned_is_good_and_each_difference_is_a_line_of_its_own() {
    let table = transactions();
    let includes = table.indexes[0].includes;
    let as_planned = described("part", includes, true);
    let good = of_table(&table, &as_planned, table.expires);
    assert_eq!(said(&good), [(State::Good, "is as planned")]);
    assert_eq!(good[0].resource, "table shop-transactions");
    let unforgetting = of_table(&table, &as_planned, None);
    assert_eq!(
        said(&unforgetting),
        [(
            State::Differs,
            "forgets nothing, though `expires_at` says when"
        )]
    );
    let otherwise = of_table(&table, &described("part", &[], false), Some("ttl"));
    let lines = [
        (State::Differs, "has no index by_state"),
        (State::Differs, "forgets by `ttl`, not by `expires_at`"),
    ];
    assert_eq!(said(&otherwise), lines);
    let narrow = of_table(
        &table,
        &described("part", &includes[1..], true),
        table.expires,
    );
    let says = format!("has an index by_state without {}", includes[0]);
    assert_eq!(said(&narrow), [(State::Differs, says.as_str())]);
}

#[test]
fn a_table_with_another_key_is_a_strangers_whatever_else_it_has() {
    let table = transactions();
    let found = of_table(&table, &described("other", &[], false), None);
    let says = "has the key id (S), other (N), not id (S), part (S): it is another program's";
    assert_eq!(said(&found), [(State::Stranger, says)]);
    assert!(found[0].remedy.contains("--prefix"));
}

fn fires() -> (Queue, HashMap<QueueAttributeName, String>) {
    let plan = plan();
    let attributes = attributes(
        &plan,
        &Place::new("eu-west-1", "123456789012"),
        &plan.fires(),
    );
    (plan.fires(), attributes)
}

#[test]
fn a_queue_that_the_service_tells_in_other_words_is_as_planned() {
    let (queue, should) = fires();
    let mut is = should.clone();
    let target = "arn:aws:sqs:eu-west-1:123456789012:shop-fires-dlq";
    let redrive = format!(r#"{{ "maxReceiveCount": "1000", "deadLetterTargetArn": "{target}" }}"#);
    is.insert(QueueAttributeName::RedrivePolicy, redrive);
    let policy =
        is[&QueueAttributeName::Policy].replace(r#"["sqs:SendMessage"]"#, r#""sqs:SendMessage""#);
    assert_ne!(policy, is[&QueueAttributeName::Policy]);
    is.insert(QueueAttributeName::Policy, policy);
    assert_eq!(
        said(&of_queue(&queue, should, &is)),
        [(State::Good, "is as planned")]
    );
}

#[test]
fn each_attribute_of_a_queue_that_is_otherwise_is_a_line_of_its_own() {
    let (queue, should) = fires();
    let mut is = should.clone();
    is.insert(QueueAttributeName::VisibilityTimeout, "5".to_owned());
    is.remove(&QueueAttributeName::RedrivePolicy);
    let policy = is[&QueueAttributeName::Policy].replace("Deny", "Allow");
    is.insert(QueueAttributeName::Policy, policy);
    let found = of_queue(&queue, should.clone(), &is);
    let mut lines: Vec<_> = found.iter().map(|it| it.says.as_str()).collect();
    lines.sort_unstable();
    let says = [
        "has VisibilityTimeout 5, not 30",
        "has another policy of who may send to it",
        "has no dead letters",
    ];
    assert_eq!(lines, says);
    assert!(
        found
            .iter()
            .all(|it| it.remedy.contains("mamparo aws apply"))
    );
    is.remove(&QueueAttributeName::Policy);
    let found = of_queue(&queue, should, &is);
    assert!(
        found
            .iter()
            .any(|it| it.says == "takes messages from anyone in the account")
    );
}
