use serde_json::Value;

use crate::plan::{Place, Plan};

fn plans() -> [Plan; 2] {
    let key = "arn:aws:kms:eu-west-1:123456789012:key/1";
    let plain = Plan::new("shop").unwrap();
    [plain.clone(), plain.encrypted_with(key).unwrap()]
}

fn place() -> Place {
    Place::new("eu-west-1", "123456789012")
}

/// Every document that a plan has, and whether it is a trust policy.
fn documents(plan: &Plan) -> Vec<(Value, bool)> {
    let [engine, scheduler] = plan.roles(&place());
    let guards = plan.queues().into_iter().filter(|queue| queue.guarded);
    let guards = guards.map(|queue| (plan.guard(&place(), &queue.name), false));
    let mut all: Vec<_> = guards.collect();
    all.extend([(plan.setup_policy(&place()), false)]);
    for role in [engine, scheduler] {
        all.extend([(role.policy, false), (role.trust, true)]);
    }
    all
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

fn statements(document: &Value) -> &Vec<Value> {
    document["Statement"]
        .as_array()
        .expect("a list of statements")
}

#[test]
fn every_policy_has_the_shape_of_one_and_allows_nothing_on_everything() {
    for plan in plans() {
        for (document, trust) in documents(&plan) {
            assert_eq!(document["Version"], "2012-10-17");
            assert!(!statements(&document).is_empty());
            for statement in statements(&document) {
                assert!(
                    ["Allow", "Deny"].contains(&statement["Effect"].as_str().unwrap()),
                    "{statement}"
                );
                let actions = texts(&statement["Action"]);
                assert!(!actions.is_empty(), "{statement}");
                for action in actions {
                    let (service, verb) = action.split_once(':').expect("service:Action");
                    assert!(
                        ["dynamodb", "iam", "kms", "scheduler", "sqs", "sts"].contains(&service),
                        "{action}"
                    );
                    assert!(
                        verb.starts_with(char::is_uppercase) && !verb.contains('*'),
                        "{action}"
                    );
                }
                if trust {
                    assert!(
                        statement.get("Resource").is_none() && statement.get("Principal").is_some()
                    );
                    continue;
                }
                let resources = texts(&statement["Resource"]);
                assert!(!resources.is_empty(), "{statement}");
                for resource in resources {
                    assert!(
                        resource.starts_with("arn:aws:") && resource.contains(":123456789012:"),
                        "{resource}"
                    );
                    let wild = resource.contains('*');
                    assert!(
                        !wild || resource.ends_with(":schedule/shop-schedules/*"),
                        "{resource}"
                    );
                }
            }
        }
    }
}

/// Who may do what, as a table: the whole of it, so that a right more is seen.
fn rights(document: &Value) -> Vec<String> {
    let mut rights = Vec::new();
    for statement in statements(document) {
        for action in texts(&statement["Action"]) {
            for resource in texts(&statement["Resource"]) {
                let name = resource.splitn(6, ':').last().unwrap();
                rights.push(format!("{action} {name}"));
            }
        }
    }
    rights.sort();
    rights
}

#[test]
fn the_scheduler_may_send_fires_and_bury_them_and_no_more() {
    let [_, scheduler] = Plan::new("shop").unwrap().roles(&place());
    assert_eq!(
        rights(&scheduler.policy),
        [
            "sqs:SendMessage shop-fires",
            "sqs:SendMessage shop-schedules-dlq"
        ]
    );
    let statement = &statements(&scheduler.trust)[0];
    assert_eq!(statement["Principal"]["Service"], "scheduler.amazonaws.com");
    let condition = &statement["Condition"];
    assert_eq!(
        condition["StringEquals"]["aws:SourceAccount"],
        "123456789012"
    );
    let group = "arn:aws:scheduler:eu-west-1:123456789012:schedule-group/shop-schedules";
    assert_eq!(condition["ArnEquals"]["aws:SourceArn"], group);
}

#[test]
fn the_engine_hands_on_one_role_to_one_service_and_touches_schedules_of_its_group_only() {
    let [engine, _] = Plan::new("shop").unwrap().roles(&place());
    let passed = statements(&engine.policy);
    let passed = passed
        .iter()
        .find(|it| texts(&it["Action"]) == ["iam:PassRole"])
        .unwrap();
    assert_eq!(
        texts(&passed["Resource"]),
        ["arn:aws:iam::123456789012:role/shop-scheduler"]
    );
    let to = &passed["Condition"]["StringEquals"]["iam:PassedToService"];
    assert_eq!(to, "scheduler.amazonaws.com");
    let rights = rights(&engine.policy);
    let of_schedules = rights.iter().filter(|it| it.starts_with("scheduler:"));
    for right in of_schedules {
        let own = right.ends_with(" schedule/shop-schedules/*")
            || right.ends_with(" schedule-group/shop-schedules");
        assert!(own, "{right}");
    }
    for never in [
        "dynamodb:DeleteTable",
        "sqs:DeleteQueue",
        "sqs:PurgeQueue",
        "scheduler:DeleteScheduleGroup",
    ] {
        assert!(!rights.iter().any(|it| it.starts_with(never)), "{never}");
    }
}

#[test]
fn only_the_queues_that_the_scheduler_sends_to_are_guarded_and_from_all_but_two_roles() {
    let plan = Plan::new("shop").unwrap();
    let guarded = plan.queues().into_iter().filter(|it| it.guarded);
    let guarded: Vec<_> = guarded.map(|it| it.name).collect();
    assert_eq!(guarded, ["shop-schedules-dlq", "shop-fires"]);
    let guard = plan.guard(&place(), "shop-fires");
    let deny = statements(&guard)
        .iter()
        .find(|it| it["Effect"] == "Deny")
        .unwrap();
    assert_eq!(deny["Principal"], "*");
    let roles = [
        "arn:aws:iam::123456789012:role/shop-scheduler",
        "arn:aws:iam::123456789012:role/shop-engine",
    ];
    assert_eq!(
        texts(&deny["Condition"]["ArnNotEquals"]["aws:PrincipalArn"]),
        roles
    );
}

#[test]
fn an_encrypted_plan_lets_both_roles_use_its_key_and_a_plain_one_names_none() {
    let [plain, encrypted] = plans();
    for role in plain.roles(&place()) {
        assert!(!role.policy.to_string().contains("kms"));
    }
    for role in encrypted.roles(&place()) {
        let keys = rights(&role.policy)
            .into_iter()
            .filter(|it| it.starts_with("kms:"));
        assert_eq!(
            keys.collect::<Vec<_>>(),
            ["kms:Decrypt key/1", "kms:GenerateDataKey key/1"]
        );
    }
    let refused = Plan::new("shop")
        .unwrap()
        .encrypted_with("alias/shop")
        .unwrap_err();
    assert!(refused.to_string().contains("must be the ARN of a key"));
}

#[test]
fn a_place_is_read_from_the_arn_of_what_is_there() {
    let queue = place().queue("shop-fires");
    assert_eq!(queue, "arn:aws:sqs:eu-west-1:123456789012:shop-fires");
    assert_eq!(Place::of(&queue), Some(place()));
    assert_eq!(
        Place::new("cn-north-1", "1").table("t"),
        "arn:aws-cn:dynamodb:cn-north-1:1:table/t"
    );
    assert_eq!(
        Place::new("us-gov-west-1", "1").role("r"),
        "arn:aws-us-gov:iam::1:role/r"
    );
    for wrong in [
        "",
        "arn",
        "arn:aws",
        "arn:aws:sqs:eu-west-1",
        "arn:aws:sqs:eu-west-1:1",
        "urn:aws:sqs:r:1:n",
    ] {
        assert_eq!(Place::of(wrong), None, "{wrong}");
    }
}
