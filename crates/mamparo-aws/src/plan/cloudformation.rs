//! The plan as a template of CloudFormation.

use serde_json::{Map, Value, json};

use super::contents::{ENGINE_SERVICE, LARGEST, Plan};
use super::place::Place;
use super::resource::{Alarm, Index, Key, Queue, Role, Table};

impl Plan {
    /// Returns a template of CloudFormation, as JSON, for any account and region.
    #[must_use]
    pub fn cloudformation(&self) -> String {
        let mut template = json!({
            "AWSTemplateFormatVersion": "2010-09-09",
            "Description": format!("Durable deferred retry of mamparo, under the prefix {}", self.prefix()),
            "Parameters": {
                "AlarmTopicArn": {
                    "Type": "String",
                    "Default": "",
                    "Description": "Where alarms go: the ARN of a topic of SNS. Empty: nowhere.",
                },
                "EngineService": {
                    "Type": "String",
                    "Default": ENGINE_SERVICE,
                    "Description": "Who may take the engine's role: ecs-tasks.amazonaws.com, ec2.amazonaws.com.",
                },
            },
            "Conditions": {
                "HasAlarmTopic": { "Fn::Not": [{ "Fn::Equals": [{ "Ref": "AlarmTopicArn" }, ""] }] },
            },
            "Resources": self.template_resources(),
            "Outputs": {
                "EngineRoleArn": output("What the engine runs as", &arn_of("EngineRole")),
                "SchedulerRoleArn": output("What the engine hands to the scheduler", &arn_of("SchedulerRole")),
            },
        });
        substitute(&mut template);
        format!("{template:#}\n")
    }

    fn template_resources(&self) -> Map<String, Value> {
        let place = Place::cloudformation();
        let key = self.kms_key();
        let mut all = Map::new();
        for table in self.tables() {
            all.insert(logical(table.id, "Table"), table_resource(&table, key));
        }
        for queue in self.queues() {
            all.insert(logical(queue.id, "Queue"), queue_resource(&queue, key));
            if queue.guarded {
                let policy = queue_policy(&queue, &self.guard(&place, &queue.name));
                all.insert(logical(queue.id, "QueuePolicy"), policy);
            }
        }
        let group = json!({ "Name": self.group().name });
        let group = resource("AWS::Scheduler::ScheduleGroup", &group);
        all.insert("ScheduleGroup".to_owned(), group);
        for role in self.roles_of(&place, &json!({ "Ref": "EngineService" })) {
            all.insert(logical(role.id, "Role"), role_resource(&role));
        }
        for alarm in self.alarms() {
            all.insert(logical(&alarm.id, "Alarm"), alarm_resource(&alarm));
        }
        all
    }
}

fn table_resource(table: &Table, kms_key: Option<&str>) -> Value {
    let attributes = table.attributes().into_iter();
    let attributes =
        attributes.map(|it| json!({ "AttributeName": it.name, "AttributeType": it.kind.as_str() }));
    let mut properties = json!({
        "TableName": table.name,
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": true,
        "AttributeDefinitions": attributes.collect::<Vec<_>>(),
        "KeySchema": key_schema(table.key),
    });
    if !table.indexes.is_empty() {
        let indexes: Vec<_> = table.indexes.iter().map(index).collect();
        properties["GlobalSecondaryIndexes"] = json!(indexes);
    }
    if let Some(expires) = table.expires {
        properties["TimeToLiveSpecification"] =
            json!({ "AttributeName": expires, "Enabled": true });
    }
    if let Some(key) = kms_key {
        properties["SSESpecification"] =
            json!({ "SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": key });
    }
    kept(resource("AWS::DynamoDB::Table", &properties))
}

fn key_schema(key: Key) -> Value {
    let kinds = ["HASH", "RANGE"];
    let schema = key.attributes().zip(kinds);
    let schema = schema.map(|(it, kind)| json!({ "AttributeName": it.name, "KeyType": kind }));
    schema.collect()
}

fn index(index: &Index) -> Value {
    json!({
        "IndexName": index.name,
        "KeySchema": key_schema(index.key),
        "Projection": { "ProjectionType": "INCLUDE", "NonKeyAttributes": index.includes },
    })
}

fn queue_resource(queue: &Queue, kms_key: Option<&str>) -> Value {
    let mut properties = json!({
        "QueueName": queue.name,
        "MaximumMessageSize": LARGEST,
        "MessageRetentionPeriod": queue.retention,
        "VisibilityTimeout": queue.visibility,
        "ReceiveMessageWaitTimeSeconds": queue.wait,
    });
    if let Some(dead) = &queue.dead_letters {
        properties["RedrivePolicy"] = json!({
            "deadLetterTargetArn": arn_of(&logical(dead.id, "Queue")),
            "maxReceiveCount": dead.max_receive_count,
        });
    }
    match kms_key {
        Some(key) => properties["KmsMasterKeyId"] = json!(key),
        None => properties["SqsManagedSseEnabled"] = json!(true),
    }
    kept(resource("AWS::SQS::Queue", &properties))
}

fn queue_policy(queue: &Queue, policy: &Value) -> Value {
    let queues = json!([{ "Ref": logical(queue.id, "Queue") }]);
    let properties = json!({ "Queues": queues, "PolicyDocument": policy });
    resource("AWS::SQS::QueuePolicy", &properties)
}

fn role_resource(role: &Role) -> Value {
    let properties = json!({
        "RoleName": role.name,
        "Description": format!("For {}", role.of),
        "AssumeRolePolicyDocument": role.trust,
        "Policies": [{ "PolicyName": role.name, "PolicyDocument": role.policy }],
    });
    resource("AWS::IAM::Role", &properties)
}

fn alarm_resource(alarm: &Alarm) -> Value {
    let dimensions = alarm.dimensions.iter();
    let dimensions = dimensions.map(|(name, value)| json!({ "Name": name, "Value": value }));
    let topic = json!([{ "Ref": "AlarmTopicArn" }]);
    let nowhere = json!({ "Ref": "AWS::NoValue" });
    let properties = json!({
        "AlarmName": alarm.name,
        "AlarmDescription": alarm.says,
        "Namespace": alarm.namespace,
        "MetricName": alarm.metric,
        "Dimensions": dimensions.collect::<Vec<_>>(),
        "Statistic": alarm.statistic,
        "Period": alarm.period,
        "EvaluationPeriods": alarm.periods,
        "Threshold": alarm.above,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
        "AlarmActions": { "Fn::If": ["HasAlarmTopic", topic, nowhere] },
    });
    resource("AWS::CloudWatch::Alarm", &properties)
}

fn resource(kind: &str, properties: &Value) -> Value {
    json!({ "Type": kind, "Properties": properties })
}

/// Neither a deleted stack nor a changed name takes transactions along.
fn kept(mut resource: Value) -> Value {
    resource["DeletionPolicy"] = json!("Retain");
    resource["UpdateReplacePolicy"] = json!("Retain");
    resource
}

fn output(description: &str, value: &Value) -> Value {
    json!({ "Description": description, "Value": value })
}

fn arn_of(logical: &str) -> Value {
    json!({ "Fn::GetAtt": [logical, "Arn"] })
}

/// `fires-dlq` and `Queue` as `FiresDlqQueue`.
fn logical(id: &str, kind: &str) -> String {
    let mut name = String::new();
    for word in id.split(['-', '_']) {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name + kind
}

/// Has CloudFormation fill in every text that names what only it knows.
fn substitute(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("${AWS::") => *value = json!({ "Fn::Sub": text }),
        Value::Array(values) => values.iter_mut().for_each(substitute),
        Value::Object(values) => values.values_mut().for_each(substitute),
        _ => {}
    }
}
