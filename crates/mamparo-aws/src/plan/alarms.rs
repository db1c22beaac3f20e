//! What is watched, and what to do when it fires.

use super::contents::Plan;
use super::resource::{Alarm, Queue};

/// As many messages of one queue as SQS lets be taken and not yet removed; nothing is delivered beyond.
pub(super) const MOST_IN_FLIGHT: u32 = 120_000;

/// Seconds of the finest figures that these services have.
const MINUTE: u32 = 60;

/// Older than this, messages come in faster than they are handled, or nobody handles them.
const TOO_OLD: u32 = 900;

/// What the scheduler could not do, and what it means.
const SCHEDULER: &[(&str, &str)] = &[
    (
        "InvocationDroppedCount",
        "fires that were given up: late, not lost; why, `mamparo dlq list --queue fires` says",
    ),
    (
        "InvocationsFailedToBeSentToDeadLetterCount",
        "fires that reached neither their queue nor the dead letters: the scheduler's role may not send, or its policy names another queue",
    ),
    (
        "InvocationThrottleCount",
        "more fires at once than the account's quota: they come later; ask for a higher quota, or spread the waits by more jitter",
    ),
    (
        "TargetErrorCount",
        "the queue of fires refused some: its policy, its key of KMS or the scheduler's role has changed; `mamparo aws check`",
    ),
];

/// Returns all alarms of a plan.
pub(super) fn of(plan: &Plan) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    for queue in plan.queues() {
        if queue.dead_letters.is_some() {
            alarms.push(old(plan, &queue));
            alarms.push(in_flight(plan, &queue));
        } else {
            alarms.push(dead(plan, &queue));
        }
    }
    let group = ("ScheduleGroup", plan.group().name);
    for (metric, says) in SCHEDULER {
        let id = format!("scheduler-{}", dashed(metric));
        let alarm = alarm(plan, id, says, ("AWS/Scheduler", *metric), group.clone());
        alarms.push(alarm);
    }
    for table in plan.tables() {
        let says = format!(
            "{} takes fewer writes than there are: nothing is lost, all is late; spread the load, or ask for a higher quota",
            table.name
        );
        let id = format!("{}-throttled", table.id);
        let metric = ("AWS/DynamoDB", "WriteThrottleEvents");
        let alarm = alarm(plan, id, &says, metric, ("TableName", table.name));
        alarms.push(Alarm {
            periods: 5,
            ..alarm
        });
    }
    alarms
}

fn dead(plan: &Plan, queue: &Queue) -> Alarm {
    let name = &queue.name;
    let says = if queue.id == plan.undelivered().id {
        format!(
            "the scheduler could not deliver fires, which are in {name}: `mamparo dlq list --queue fires` says why; then `dlq requeue`"
        )
    } else {
        format!(
            "{name} has caught messages that no engine could bury: `mamparo dlq list`, mend the cause, `mamparo dlq requeue`"
        )
    };
    Alarm {
        statistic: "Maximum",
        ..of_queue(
            plan,
            queue,
            "letters",
            &says,
            "ApproximateNumberOfMessagesVisible",
        )
    }
}

fn old(plan: &Plan, queue: &Queue) -> Alarm {
    let name = &queue.name;
    let says = format!(
        "{name} has messages older than 15 minutes: no engine runs, it is not ready, or more comes in than --rate and --concurrency let out"
    );
    Alarm {
        statistic: "Maximum",
        periods: 5,
        above: TOO_OLD,
        ..of_queue(plan, queue, "old", &says, "ApproximateAgeOfOldestMessage")
    }
}

fn in_flight(plan: &Plan, queue: &Queue) -> Alarm {
    let name = &queue.name;
    let says = format!(
        "{name} has nearly as many messages taken as SQS allows: fewer engines, a lower --concurrency or shorter leases"
    );
    Alarm {
        statistic: "Maximum",
        above: MOST_IN_FLIGHT / 5 * 4,
        ..of_queue(
            plan,
            queue,
            "taken",
            &says,
            "ApproximateNumberOfMessagesNotVisible",
        )
    }
}

fn of_queue(plan: &Plan, queue: &Queue, what: &str, says: &str, metric: &'static str) -> Alarm {
    let id = format!("{}-{what}", queue.id);
    let dimension = ("QueueName", queue.name.clone());
    alarm(plan, id, says, ("AWS/SQS", metric), dimension)
}

/// Fires as soon as one minute's sum is above zero.
fn alarm(
    plan: &Plan,
    id: String,
    says: &str,
    (namespace, metric): (&'static str, &'static str),
    dimension: (&'static str, String),
) -> Alarm {
    Alarm {
        name: format!("{}-{id}", plan.prefix()),
        id,
        says: says.to_owned(),
        namespace,
        metric,
        dimensions: vec![dimension],
        statistic: "Sum",
        period: MINUTE,
        periods: 1,
        above: 0,
    }
}

/// `TargetErrorCount` as `target-error`.
fn dashed(metric: &str) -> String {
    let mut dashed = String::new();
    for c in metric.trim_end_matches("Count").chars() {
        if c.is_ascii_uppercase() && !dashed.is_empty() {
            dashed.push('-');
        }
        dashed.push(c.to_ascii_lowercase());
    }
    dashed
}
