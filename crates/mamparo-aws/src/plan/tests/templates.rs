use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::plan::{Place, Plan};

fn same_as_written(file: &str, format: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/operating/aws")
        .join(file);
    let written = fs::read_to_string(&path).unwrap_or_default();
    let command = format!(
        "cargo run -p mamparo-cli -- aws plan --format {format} > docs/operating/aws/{file}"
    );
    assert!(
        written == text,
        "{file} is not what the code prints: {command}"
    );
}

#[test]
fn the_templates_in_the_docs_are_what_the_code_prints() {
    let plan = Plan::new("mamparo").unwrap();
    same_as_written(
        "cloudformation.json",
        "cloudformation",
        &plan.cloudformation(),
    );
    same_as_written("terraform.tf.json", "terraform", &plan.terraform());
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn both_templates_have_every_resource_of_the_plan() {
    let plan = Plan::new("shop").unwrap();
    let template = read(&plan.cloudformation());
    let made = template["Resources"].as_object().unwrap().values();
    let of = |kind: &str, name: &str| {
        let of_kind = made.clone().filter(|it| it["Type"] == kind);
        let names = of_kind.map(|it| it["Properties"][name].as_str().unwrap().to_owned());
        names.collect::<BTreeSet<_>>()
    };
    let config = read(&plan.terraform());
    let named = |kind: &str, name: &str| {
        let all = config["resource"][kind].as_object().unwrap().values();
        let names = all.map(|it| it[name].as_str().unwrap().to_owned());
        names.collect::<BTreeSet<_>>()
    };
    let tables: BTreeSet<_> = plan.tables().into_iter().map(|it| it.name).collect();
    let queues: BTreeSet<_> = plan.queues().into_iter().map(|it| it.name).collect();
    let roles = plan.roles(&Place::new("eu-west-1", "1"));
    let roles: BTreeSet<_> = roles.into_iter().map(|it| it.name).collect();
    let alarms: BTreeSet<_> = plan.alarms().into_iter().map(|it| it.name).collect();
    assert_eq!(
        (
            of("AWS::DynamoDB::Table", "TableName"),
            named("aws_dynamodb_table", "name")
        ),
        (tables.clone(), tables)
    );
    assert_eq!(
        (
            of("AWS::SQS::Queue", "QueueName"),
            named("aws_sqs_queue", "name")
        ),
        (queues.clone(), queues)
    );
    assert_eq!(
        (
            of("AWS::IAM::Role", "RoleName"),
            named("aws_iam_role", "name")
        ),
        (roles.clone(), roles)
    );
    let both = (
        of("AWS::CloudWatch::Alarm", "AlarmName"),
        named("aws_cloudwatch_metric_alarm", "alarm_name"),
    );
    assert_eq!(both, (alarms.clone(), alarms));
    let group = plan.group().name;
    assert!(of("AWS::Scheduler::ScheduleGroup", "Name").contains(&group));
    assert!(named("aws_scheduler_schedule_group", "name").contains(&group));
}

/// What Terraform refers to, `aws_sqs_queue.fires.arn` as `aws_sqs_queue.fires`.
fn references(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let inside = text
        .split("${")
        .skip(1)
        .filter_map(|rest| rest.split_once('}'));
    let words = inside.flat_map(|(inside, _)| inside.split(move |c| !is_word(c)));
    let referring = words.filter(|word| {
        ["aws_", "local.", "var.", "data."]
            .iter()
            .any(|it| word.starts_with(it))
    });
    let parts = |word: &str| {
        if word.starts_with("data.") {
            3
        } else {
            2.min(word.split('.').count())
        }
    };
    referring
        .map(|word| {
            word.split('.')
                .take(parts(word))
                .collect::<Vec<_>>()
                .join(".")
        })
        .collect()
}

#[test]
fn all_that_terraform_refers_to_is_there() {
    let key = "arn:aws:kms:eu-west-1:123456789012:key/1";
    let text = Plan::new("shop")
        .unwrap()
        .encrypted_with(key)
        .unwrap()
        .terraform();
    let config = read(&text);
    let references = references(&text);
    assert!(
        references.contains("aws_sqs_queue.fires_dlq"),
        "{references:?}"
    );
    for reference in references {
        let path: Vec<_> = reference.split('.').collect();
        let found = match path[..] {
            ["local", name] => config["locals"].get(name),
            ["var", name] => config["variable"].get(name),
            ["data", kind, name] => config["data"][kind].get(name),
            [kind, name] => config["resource"][kind].get(name),
            _ => None,
        };
        assert!(found.is_some(), "{reference}");
    }
}

#[test]
fn no_prefix_makes_a_name_that_a_service_refuses() {
    let longest = "p".repeat(40);
    let plan = Plan::new(&longest).unwrap();
    let names = plan
        .queues()
        .into_iter()
        .map(|it| it.name)
        .chain(plan.tables().into_iter().map(|it| it.name));
    let names = names.chain([plan.group().name, plan.engine_role(), plan.scheduler_role()]);
    for name in names {
        assert!(name.len() <= 64, "{name}");
    }
    for refused in ["", "a b", "ñ", "a/b", &"p".repeat(41)] {
        assert!(Plan::new(refused).is_err(), "{refused}");
    }
}
