//! `mamparo aws`, and the defer plane on it, against a local server that answers as AWS does.

use std::time::Duration;

use insta::assert_snapshot;
use mamparo_testkit::private::PrivateMoto;

use crate::run::{Ran, mamparo, with_env};

/// Asks nothing of the machine that the test runs on.
const NOBODY: [(&str, &str); 4] = [
    ("AWS_EC2_METADATA_DISABLED", "true"),
    ("AWS_CONFIG_FILE", "none"),
    ("AWS_SHARED_CREDENTIALS_FILE", "none"),
    ("AWS_REGION", "eu-west-1"),
];

async fn on(endpoint: &str, args: &[&str]) -> Ran {
    let somebody = [
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_ENDPOINT_URL", endpoint),
    ];
    with_env(args, &[&NOBODY[..], &somebody].concat()).await
}

fn text(ran: &Ran) -> &str {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    std::str::from_utf8(&ran.stdout).unwrap()
}

#[tokio::test]
async fn a_plan_in_words_has_all_of_it_and_what_a_load_takes() {
    let ran = mamparo(&["aws", "plan", "--rate", "20/s", "--mean-wait", "4h"]).await;
    assert_snapshot!(text(&ran), @r"
    Tables of DynamoDB, billed by request:
     mamparo-transactions  transactions, requests and history    key id + part; index by_state on place + since; forgets by expires_at
     mamparo-outbox        what committed steps still want done  key slot + serial
     mamparo-dead-letters  what could not be handled             key queue + number

    Queues of SQS:
     mamparo-schedules-dlq  fires that the scheduler could not publish  kept 14 days; from two roles only
     mamparo-answers-dlq    answers that nobody could even bury         kept 14 days
     mamparo-fires-dlq      fires that nobody could even bury           kept 14 days
     mamparo-requests-dlq   requests that nobody could even bury        kept 14 days
     mamparo-answers        what dependencies said                      kept 7 days; dead after 1000 deliveries
     mamparo-fires          what is due                                 kept 7 days; dead after 1000 deliveries; from two roles only
     mamparo-requests       what is to be sent                          kept 7 days; dead after 1000 deliveries

    Group of schedules of EventBridge Scheduler:
     mamparo-schedules  one schedule for each transaction that waits

    Roles of IAM (their policies: --format json):
     arn:aws:iam::ACCOUNT:role/mamparo-engine     for the engines, and whoever runs `mamparo tx` and `dlq`
     arn:aws:iam::ACCOUNT:role/mamparo-scheduler  for EventBridge Scheduler, to publish fires

    Alarms of CloudWatch:
     mamparo-schedules-dlq-letters                                   ApproximateNumberOfMessagesVisible above 0
     mamparo-answers-dlq-letters                                     ApproximateNumberOfMessagesVisible above 0
     mamparo-fires-dlq-letters                                       ApproximateNumberOfMessagesVisible above 0
     mamparo-requests-dlq-letters                                    ApproximateNumberOfMessagesVisible above 0
     mamparo-answers-old                                             ApproximateAgeOfOldestMessage above 900
     mamparo-answers-taken                                           ApproximateNumberOfMessagesNotVisible above 96000
     mamparo-fires-old                                               ApproximateAgeOfOldestMessage above 900
     mamparo-fires-taken                                             ApproximateNumberOfMessagesNotVisible above 96000
     mamparo-requests-old                                            ApproximateAgeOfOldestMessage above 900
     mamparo-requests-taken                                          ApproximateNumberOfMessagesNotVisible above 96000
     mamparo-scheduler-invocation-dropped                            InvocationDroppedCount above 0
     mamparo-scheduler-invocations-failed-to-be-sent-to-dead-letter  InvocationsFailedToBeSentToDeadLetterCount above 0
     mamparo-scheduler-invocation-throttle                           InvocationThrottleCount above 0
     mamparo-scheduler-target-error                                  TargetErrorCount above 0
     mamparo-transactions-throttled                                  WriteThrottleEvents above 0
     mamparo-outbox-throttled                                        WriteThrottleEvents above 0
     mamparo-dead-letters-throttled                                  WriteThrottleEvents above 0

    What it takes, against default quotas:
     schedules that are active              288000  of 10000000                         fits
     schedules made, a second               20      of 5000, or 250 in smaller regions  fits
     fires, a second                        20      of 1000, or 500 in smaller regions  fits
     write units of one table, a second     440     of 40000                            fits
     messages of one queue taken at a time  20      of 120000                           fits

    A million deferrals, on public prices of 2026-03 in us-east-1, free tiers left out:
     DynamoDB               22 million write request units  at $0.625 a million  $13.75
     DynamoDB               4 million read request units    at $0.125 a million  $0.50
     SQS                    1.8 million requests            at $0.4 a million    $0.72
     EventBridge Scheduler  1 million invocations           at $1 a million      $1.00

    $15.97 a million deferrals, $840 a month of this load
    ");
}

#[tokio::test]
async fn a_plan_as_json_has_the_policies_with_real_arns_and_the_capacity() {
    let plan = [
        "aws",
        "plan",
        "--json",
        "--prefix",
        "shop",
        "--region",
        "eu-west-1",
        "--account",
        "123456789012",
    ];
    let json = mamparo(&[&plan[..], &["--rate", "1200/m", "--mean-wait", "4h"]].concat())
        .await
        .json();
    assert_eq!(json["roles"][1]["name"], "shop-scheduler");
    let sends = &json["roles"][1]["policy"]["Statement"][0]["Resource"][0];
    assert_eq!(sends, "arn:aws:sqs:eu-west-1:123456789012:shop-fires");
    assert_eq!(json["capacity"]["active_schedules"], 288_000.0);
}

#[tokio::test]
async fn the_templates_are_json_and_nothing_else() {
    for format in ["cloudformation", "terraform"] {
        let ran = mamparo(&["aws", "plan", "--format", format]).await;
        assert!(ran.json().is_object(), "{format}");
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_in_one_line() {
    for (args, says) in [
        (
            &["--prefix", "my shop"][..],
            "prefix = \"my shop\" is refused: must be 1 to 40 of",
        ),
        (&["--kms-key", "alias/a"], "must be the ARN of a key"),
        (&["--account", "12"], "it is twelve digits"),
        (
            &["--rate", "0/s", "--mean-wait", "1h"],
            "it lets nothing pass",
        ),
        (
            &["--rate", "1/s", "--mean-wait", "400d"],
            "must be at most a year",
        ),
        (&["--rate", "1/s"], "--mean-wait"),
        (&["--format", "xml"], "invalid value 'xml'"),
    ] {
        let ran = mamparo(&[&["aws", "plan"], args].concat()).await;
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
    let ran = mamparo(&["tx", "show", "t", "--store", "aws:"]).await;
    assert!(ran.stderr.contains("aws or aws:PREFIX"), "{}", ran.stderr);
}

#[tokio::test]
async fn what_is_applied_is_checked_and_what_is_missing_exits_with_1() {
    let server = PrivateMoto::shared().await.url();
    let command = |verb| ["aws", verb, "--prefix", "applied"];
    let missing = on(&server, &command("check")).await;
    assert_eq!(missing.code, 1);
    let says = "missing   table applied-transactions is not there: run `mamparo aws apply`";
    assert!(String::from_utf8_lossy(&missing.stdout).contains(says));
    let applied = on(&server, &command("apply")).await;
    assert!(text(&applied).contains("ok        queue applied-fires is as planned"));
    assert!(
        applied.stderr.contains("queue applied-fires: creating"),
        "{}",
        applied.stderr
    );
    let checked = on(&server, &[&command("check")[..], &["--json"]].concat()).await;
    assert_eq!(
        (checked.code, &checked.json()["as_planned"]),
        (0, &true.into())
    );
    let again = on(&server, &command("apply")).await;
    assert_eq!((again.code, again.stderr.as_str()), (0, ""));
}

#[tokio::test]
async fn each_way_not_to_reach_it_is_one_line() {
    let server = PrivateMoto::shared().await.url();
    let missing = on(&server, &["tx", "show", "t", "--store", "aws:nowhere"]).await;
    let dead = on("http://127.0.0.1:9", &["aws", "check"]).await;
    let nobody = with_env(&["aws", "check"], &NOBODY).await;
    let nowhere = with_env(&["aws", "check"], &NOBODY[..3]).await;
    for (ran, code, says) in [
        (
            missing,
            4,
            "DynamoDB has no table nowhere-transactions in this region and account: run `mamparo aws apply`",
        ),
        (dead, 4, "DynamoDB does not answer"),
        (
            nobody,
            1,
            "no credentials were found: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or give this machine a role",
        ),
        (
            nowhere,
            1,
            "no region is set: set AWS_REGION, or name one in the settings",
        ),
    ] {
        assert_eq!(ran.stderr, format!("error: {says}\n"));
        assert_eq!(ran.code, code, "{says}");
        assert!(ran.took < Duration::from_secs(15), "{says}: {:?}", ran.took);
    }
}
