//! The plan as a configuration of Terraform.

use serde_json::{Map, Value, json};

use super::contents::{ENGINE_SERVICE, LARGEST, Plan};
use super::place::Place;
use super::resource::{Alarm, Index, Queue, Role, Table};

impl Plan {
    /// Returns a configuration of Terraform, or of OpenTofu, as JSON: write it to a file whose name ends in `.tf.json`.
    #[must_use]
    pub fn terraform(&self) -> String {
        let place = Place::terraform();
        let roles = self.roles_of(&place, &json!("${var.engine_service}"));
        let guarded: Vec<_> = self.queues().into_iter().filter(|it| it.guarded).collect();
        let mut locals = Map::new();
        for Role {
            id, trust, policy, ..
        } in &roles
        {
            locals.insert(format!("{id}_trust"), trust.clone());
            locals.insert(format!("{id}_policy"), policy.clone());
        }
        for queue in &guarded {
            let policy = self.guard(&place, &queue.name);
            locals.insert(format!("{}_queue_policy", word(queue.id)), policy);
        }
        let key = self.kms_key();
        let config = json!({
            "terraform": { "required_providers": { "aws": { "source": "hashicorp/aws", "version": ">= 6.0" } } },
            "variable": variables(),
            "data": {
                "aws_caller_identity": { "current": {} },
                "aws_partition": { "current": {} },
                "aws_region": { "current": {} },
            },
            "locals": locals,
            "resource": {
                "aws_dynamodb_table": named(&self.tables(), |it| (word(it.id), table(it, key))),
                "aws_sqs_queue": named(&self.queues(), |it| (word(it.id), queue(it, key))),
                "aws_sqs_queue_policy": named(&guarded, |it| (word(it.id), queue_policy(it))),
                "aws_scheduler_schedule_group": { "schedules": { "name": self.group().name } },
                "aws_iam_role": named(&roles, |it| (word(it.id), role(it))),
                "aws_iam_role_policy": named(&roles, |it| (word(it.id), role_policy(it))),
                "aws_cloudwatch_metric_alarm": named(&self.alarms(), |it| (word(&it.id), alarm(it))),
            },
            "output": {
                "engine_role_arn": { "value": "${aws_iam_role.engine.arn}" },
                "scheduler_role_arn": { "value": "${aws_iam_role.scheduler.arn}" },
            },
        });
        format!("{config:#}\n")
    }
}

fn variables() -> Value {
    json!({
        "alarm_topic_arns": {
            "type": "list(string)",
            "default": [],
            "description": "Where alarms go: ARNs of topics of SNS",
        },
        "engine_service": {
            "type": "string",
            "default": ENGINE_SERVICE,
            "description": "Who may take the engine's role: ecs-tasks.amazonaws.com, ec2.amazonaws.com",
        },
    })
}

fn named<T>(all: &[T], of: impl Fn(&T) -> (String, Value)) -> Map<String, Value> {
    all.iter().map(of).collect()
}

fn table(table: &Table, kms_key: Option<&str>) -> Value {
    let attributes = table.attributes().into_iter();
    let attributes = attributes.map(|it| json!({ "name": it.name, "type": it.kind.as_str() }));
    let mut config = json!({
        "name": table.name,
        "billing_mode": "PAY_PER_REQUEST",
        "deletion_protection_enabled": true,
        "hash_key": table.key.partition.name,
        "attribute": attributes.collect::<Vec<_>>(),
    });
    if let Some(sort) = table.key.sort {
        config["range_key"] = json!(sort.name);
    }
    if !table.indexes.is_empty() {
        let indexes: Vec<_> = table.indexes.iter().map(index).collect();
        config["global_secondary_index"] = json!(indexes);
    }
    if let Some(expires) = table.expires {
        config["ttl"] = json!({ "attribute_name": expires, "enabled": true });
    }
    if let Some(key) = kms_key {
        config["server_side_encryption"] = json!({ "enabled": true, "kms_key_arn": key });
    }
    config
}

fn index(index: &Index) -> Value {
    let mut config = json!({
        "name": index.name,
        "hash_key": index.key.partition.name,
        "projection_type": "INCLUDE",
        "non_key_attributes": index.includes,
    });
    if let Some(sort) = index.key.sort {
        config["range_key"] = json!(sort.name);
    }
    config
}

fn queue(queue: &Queue, kms_key: Option<&str>) -> Value {
    let mut config = json!({
        "name": queue.name,
        "max_message_size": LARGEST,
        "message_retention_seconds": queue.retention,
        "visibility_timeout_seconds": queue.visibility,
        "receive_wait_time_seconds": queue.wait,
    });
    if let Some(dead) = &queue.dead_letters {
        let (id, most) = (word(dead.id), dead.max_receive_count);
        let redrive = format!(
            "${{jsonencode({{ deadLetterTargetArn = aws_sqs_queue.{id}.arn, maxReceiveCount = {most} }})}}"
        );
        config["redrive_policy"] = json!(redrive);
    }
    match kms_key {
        Some(key) => config["kms_master_key_id"] = json!(key),
        None => config["sqs_managed_sse_enabled"] = json!(true),
    }
    config
}

fn queue_policy(queue: &Queue) -> Value {
    let id = word(queue.id);
    json!({
        "queue_url": format!("${{aws_sqs_queue.{id}.id}}"),
        "policy": format!("${{jsonencode(local.{id}_queue_policy)}}"),
    })
}

fn role(role: &Role) -> Value {
    json!({
        "name": role.name,
        "description": format!("For {}", role.of),
        "assume_role_policy": format!("${{jsonencode(local.{}_trust)}}", role.id),
    })
}

fn role_policy(role: &Role) -> Value {
    let Role { id, name, .. } = role;
    json!({
        "name": name,
        "role": format!("${{aws_iam_role.{id}.id}}"),
        "policy": format!("${{jsonencode(local.{id}_policy)}}"),
    })
}

fn alarm(alarm: &Alarm) -> Value {
    let dimensions: Map<_, _> = alarm
        .dimensions
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    json!({
        "alarm_name": alarm.name,
        "alarm_description": alarm.says,
        "namespace": alarm.namespace,
        "metric_name": alarm.metric,
        "dimensions": dimensions,
        "statistic": alarm.statistic,
        "period": alarm.period,
        "evaluation_periods": alarm.periods,
        "threshold": alarm.above,
        "comparison_operator": "GreaterThanThreshold",
        "treat_missing_data": "notBreaching",
        "alarm_actions": "${var.alarm_topic_arns}",
    })
}

/// `fires-dlq` as `fires_dlq`.
fn word(id: &str) -> String {
    id.replace('-', "_")
}
