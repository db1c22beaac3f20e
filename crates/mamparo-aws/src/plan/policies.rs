//! Who may do what: least privilege, as IAM writes it.
//!
//! No statement allows an action on everything. A queue's policy names no role as its principal, which would have to exist
//! first, but says by a condition who may send.

use serde_json::{Value, json};

use super::contents::Plan;
use super::place::Place;

/// What the engine does with items. `TransactWriteItems` and the batches need no action of their own but these.
const ITEMS: &[&str] = &[
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
];

/// What it does with messages.
const MESSAGES: &[&str] = &[
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
    "sqs:SendMessage",
];

/// What it does with schedules. What is made is never changed: another instant has another name.
const SCHEDULES: &[&str] = &[
    "scheduler:CreateSchedule",
    "scheduler:DeleteSchedule",
    "scheduler:GetSchedule",
];

/// What `check` reads of tables.
const LOOK: &[&str] = &["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"];

/// What `apply` does besides.
const MAKE_TABLES: &[&str] = &["dynamodb:CreateTable", "dynamodb:UpdateTimeToLive"];
const MAKE_QUEUES: &[&str] = &[
    "sqs:CreateQueue",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:SetQueueAttributes",
];
const MAKE_GROUP: &[&str] = &[
    "scheduler:CreateScheduleGroup",
    "scheduler:GetScheduleGroup",
];

/// What reading and writing encrypted messages needs.
const ENCRYPTED: &[&str] = &["kms:Decrypt", "kms:GenerateDataKey"];

/// What using a table with a key of one's own needs besides.
const ENCRYPTED_TABLES: &[&str] = &["kms:CreateGrant", "kms:DescribeKey"];

/// Returns what the engine may do.
pub(super) fn engine(plan: &Plan, place: &Place) -> Value {
    let passed = json!({ "StringEquals": { "iam:PassedToService": "scheduler.amazonaws.com" } });
    let scheduler = place.role(&plan.scheduler_role());
    let mut statements = vec![
        allow("Items", ITEMS, &tables_and_indexes(plan, place)),
        allow("LookAtTables", LOOK, &tables(plan, place)),
        allow("Messages", MESSAGES, &queues(plan, place)),
        allow(
            "Schedules",
            SCHEDULES,
            &[place.schedules(&plan.group().name)],
        ),
        allow(
            "LookAtTheGroup",
            &["scheduler:GetScheduleGroup"],
            &[place.group(&plan.group().name)],
        ),
        with(
            allow("HandTheSchedulerItsRole", &["iam:PassRole"], &[scheduler]),
            passed,
        ),
    ];
    statements.extend(encrypted(plan, ENCRYPTED));
    document(&statements)
}

/// Returns what the scheduler may do: publish fires, and bury those that it can't publish.
pub(super) fn scheduler(plan: &Plan, place: &Place) -> Value {
    let into = [plan.fires().name, plan.undelivered().name].map(|name| place.queue(&name));
    let mut statements = vec![allow("Fires", &["sqs:SendMessage"], &into)];
    statements.extend(encrypted(plan, ENCRYPTED));
    document(&statements)
}

/// Returns what whoever runs `mamparo aws apply` and `check` may do.
pub(super) fn setup(plan: &Plan, place: &Place) -> Value {
    let group = [place.group(&plan.group().name)];
    let mut statements = vec![
        allow(
            "Tables",
            &[LOOK, MAKE_TABLES].concat(),
            &tables(plan, place),
        ),
        allow("Queues", MAKE_QUEUES, &queues(plan, place)),
        allow("Group", MAKE_GROUP, &group),
    ];
    statements.extend(encrypted(plan, &[ENCRYPTED, ENCRYPTED_TABLES].concat()));
    document(&statements)
}

/// Returns who may take the scheduler's role: the service, for this group of this account.
pub(super) fn scheduler_trust(plan: &Plan, place: &Place) -> Value {
    let condition = json!({
        "ArnEquals": { "aws:SourceArn": place.group(&plan.group().name) },
        "StringEquals": { "aws:SourceAccount": place.account() },
    });
    trust(&json!("scheduler.amazonaws.com"), Some(condition))
}

/// Returns who may take the engine's role.
pub(super) fn engine_trust(service: &Value) -> Value {
    trust(service, None)
}

/// Returns the policy of a queue that takes messages from the engine and the scheduler only, whatever else an account's
/// policies allow.
pub(super) fn guard(plan: &Plan, place: &Place, queue: &str) -> Value {
    let queue = place.queue(queue);
    let roles = [plan.scheduler_role(), plan.engine_role()].map(|role| place.role(&role));
    let [scheduler, _] = &roles;
    let allow = json!({
        "Sid": "TheScheduler",
        "Effect": "Allow",
        "Principal": { "AWS": place.root() },
        "Action": ["sqs:SendMessage"],
        "Resource": [&queue],
        "Condition": { "ArnEquals": { "aws:PrincipalArn": scheduler } },
    });
    let deny = json!({
        "Sid": "NobodyElse",
        "Effect": "Deny",
        "Principal": "*",
        "Action": ["sqs:SendMessage"],
        "Resource": [&queue],
        "Condition": { "ArnNotEquals": { "aws:PrincipalArn": &roles } },
    });
    document(&[allow, deny])
}

fn tables(plan: &Plan, place: &Place) -> Vec<String> {
    let tables = plan.tables();
    tables.iter().map(|it| place.table(&it.name)).collect()
}

fn tables_and_indexes(plan: &Plan, place: &Place) -> Vec<String> {
    let mut all = tables(plan, place);
    for table in plan.tables() {
        let indexes = table.indexes.iter();
        all.extend(indexes.map(|it| place.table(&format!("{}/index/{}", table.name, it.name))));
    }
    all
}

fn queues(plan: &Plan, place: &Place) -> Vec<String> {
    let queues = plan.queues();
    queues.iter().map(|it| place.queue(&it.name)).collect()
}

fn encrypted(plan: &Plan, actions: &[&str]) -> Option<Value> {
    let key = plan.kms_key()?;
    Some(allow("Encrypted", actions, &[key.to_owned()]))
}

fn allow(sid: &str, actions: &[&str], resources: &[String]) -> Value {
    json!({ "Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources })
}

fn with(mut statement: Value, condition: Value) -> Value {
    statement["Condition"] = condition;
    statement
}

fn trust(service: &Value, condition: Option<Value>) -> Value {
    let mut statement = json!({
        "Effect": "Allow",
        "Principal": { "Service": service },
        "Action": "sts:AssumeRole",
    });
    if let Some(condition) = condition {
        statement["Condition"] = condition;
    }
    document(&[statement])
}

fn document(statements: &[Value]) -> Value {
    json!({ "Version": "2012-10-17", "Statement": statements })
}
