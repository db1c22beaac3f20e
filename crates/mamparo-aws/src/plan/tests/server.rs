use aws_sdk_dynamodb::types::TimeToLiveSpecification;
use aws_sdk_sqs::types::QueueAttributeName;
use mamparo_durable::backend::{BackendError, Trouble};
use mamparo_testkit::private::PrivateMoto;

use crate::plan::{self, Finding, Plan, State};
use crate::{Aws, Settings};

/// Each test has a prefix of its own on the shared server.
async fn aws(prefix: &str) -> (Aws, Plan) {
    let server = PrivateMoto::shared().await;
    let settings = Settings::builder()
        .endpoint(server.url())
        .region("eu-west-1");
    let settings = settings.credentials("test", "test").prefix(prefix);
    let aws = Aws::connect(settings.build().unwrap()).await.unwrap();
    let plan = Plan::of(&aws);
    (aws, plan)
}

async fn apply(aws: &Aws, plan: &Plan) -> Result<(Vec<Finding>, Vec<String>), BackendError> {
    let mut lines = Vec::new();
    let found = plan::apply(aws, plan, &mut |line| lines.push(line.to_owned())).await?;
    Ok((found, lines))
}

/// What is not as planned, a line each.
async fn trouble(aws: &Aws, plan: &Plan) -> Vec<(State, String)> {
    let found = plan::check(aws, plan).await.unwrap();
    let trouble = found.into_iter().filter(Finding::is_trouble);
    trouble
        .map(|it| (it.state, format!("{} {}", it.resource, it.says)))
        .collect()
}

#[tokio::test]
async fn what_is_applied_checks_good_and_applied_again_changes_nothing() {
    let (aws, plan) = aws("twice").await;
    let missing = trouble(&aws, &plan).await;
    assert_eq!(missing.len(), plan.tables().len() + plan.queues().len() + 1);
    assert!(
        missing.iter().all(|(state, _)| *state == State::Missing),
        "{missing:?}"
    );
    let (found, lines) = apply(&aws, &plan).await.unwrap();
    assert!(!found.iter().any(Finding::is_trouble), "{found:?}");
    assert!(
        lines.contains(&"table twice-transactions: creating".to_owned()),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"schedule group twice-schedules: creating".to_owned()),
        "{lines:?}"
    );
    let unseen: Vec<_> = found
        .iter()
        .filter(|it| it.state == State::Unseen)
        .collect();
    assert_eq!(unseen.len(), 2, "the roles");
    let (again, lines) = apply(&aws, &plan).await.unwrap();
    assert_eq!((again, lines), (found, Vec::new()));
}

#[tokio::test]
async fn each_thing_that_breaks_is_one_line_and_applied_again_is_mended() {
    let (aws, plan) = aws("broken").await;
    apply(&aws, &plan).await.unwrap();
    let url = |name: &str| {
        let asked = aws.sqs().get_queue_url().queue_name(name);
        async move { asked.send().await.unwrap().queue_url.unwrap() }
    };
    let gone = aws
        .sqs()
        .delete_queue()
        .queue_url(url("broken-answers").await);
    gone.send().await.unwrap();
    let short = aws
        .sqs()
        .set_queue_attributes()
        .queue_url(url("broken-requests").await);
    let short = short.attributes(QueueAttributeName::VisibilityTimeout, "1");
    short.send().await.unwrap();
    let open = aws
        .sqs()
        .set_queue_attributes()
        .queue_url(url("broken-fires").await);
    open.attributes(QueueAttributeName::Policy, "")
        .send()
        .await
        .unwrap();
    let group = aws
        .scheduler()
        .delete_schedule_group()
        .name("broken-schedules");
    group.send().await.unwrap();
    let forget = TimeToLiveSpecification::builder()
        .attribute_name("expires_at")
        .enabled(false);
    let forget = aws
        .dynamo()
        .update_time_to_live()
        .time_to_live_specification(forget.build().unwrap());
    forget
        .table_name("broken-transactions")
        .send()
        .await
        .unwrap();
    let mut lines = trouble(&aws, &plan).await;
    lines.sort_by(|a, b| a.1.cmp(&b.1));
    let differs = |says: &str| (State::Differs, says.to_owned());
    let missing = |what: &str| (State::Missing, format!("{what} is not there"));
    let expected = [
        missing("queue broken-answers"),
        differs("queue broken-fires takes messages from anyone in the account"),
        differs("queue broken-requests has VisibilityTimeout 1, not 30"),
        missing("schedule group broken-schedules"),
        differs("table broken-transactions forgets nothing, though `expires_at` says when"),
    ];
    assert_eq!(lines, expected);
    let (found, _) = apply(&aws, &plan).await.unwrap();
    assert!(!found.iter().any(Finding::is_trouble), "{found:?}");
}

#[tokio::test]
async fn a_table_with_another_key_is_refused_and_nothing_is_made() {
    let (aws, plan) = aws("stranger").await;
    let (_, theirs) = self::aws("other").await;
    let outbox = theirs.tables().remove(1);
    let stranger = plan::Table {
        name: plan.tables()[0].name.clone(),
        ..outbox
    };
    plan::make::create_table(&aws, &plan, &stranger)
        .await
        .unwrap();
    let error = apply(&aws, &plan).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Incompatible);
    let line = error.to_string();
    assert!(
        line.starts_with(
            "table stranger-transactions has the key slot (S), serial (S), not id (S), part (S)"
        ),
        "{line}"
    );
    assert!(!line.contains('\n'));
    let lines = trouble(&aws, &plan).await;
    assert_eq!(
        lines
            .iter()
            .filter(|(state, _)| *state == State::Stranger)
            .count(),
        1
    );
    let missing = lines
        .iter()
        .filter(|(state, _)| *state == State::Missing)
        .count();
    assert_eq!(missing, lines.len() - 1, "{lines:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_one_line() {
    let settings = Settings::builder()
        .endpoint("http://127.0.0.1:9")
        .region("eu-west-1");
    let settings = settings
        .credentials("test", "test")
        .attempts(1)
        .build()
        .unwrap();
    let aws = Aws::connect(settings).await.unwrap();
    let error = plan::check(&aws, &Plan::of(&aws)).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unavailable);
    assert_eq!(error.to_string(), "DynamoDB does not answer");
}
