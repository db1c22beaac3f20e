//! The settings of a dependency, which are those of a profile too.

use std::borrow::Cow;

use super::defer::DEFER;
use super::field::Field;
use super::field::Kind::{
    Choice, Count, Duration, Flag, Limit, Number, Statuses, Switch, Table, Text, Words,
};

pub(super) const fn field(
    name: &'static str,
    kind: super::Kind,
    default: &'static str,
    says: &'static str,
) -> Field {
    Field {
        name,
        kind,
        says,
        default,
    }
}

const OFF: &[&str] = &["off"];
const MOST: i64 = i64::MAX;

/// In the order of the stack, outermost first.
pub(in crate::policy) const DEPENDENCY: &[Field] = &[
    field(
        "profile",
        Text,
        "none",
        "The profile whose settings hold where this table has none.",
    ),
    field("url", Text, "none", "Where the dependency is."),
    field(
        "protocol",
        Choice(&["http", "grpc"]),
        "http",
        "How its answers are judged, and its deadline travels.",
    ),
    field(
        "deadline",
        Limit("none"),
        "10s",
        "How long an operation may take, with all its attempts and waits.",
    ),
    field(
        "reserve",
        Duration,
        "the smaller of 5 % and 50ms",
        "Time kept back from the deadline to deliver the answer.",
    ),
    field(
        "load_shed",
        Switch(OFF, LOAD_SHED),
        "off",
        "Refuses operations while the load is too high.",
    ),
    field(
        "idempotency_key",
        Switch(&["off", "require"], IDEMPOTENCY_KEY),
        "off",
        "Gives each unsafe request a key, so that the dependency may tell a resend.",
    ),
    field(
        "bulkhead",
        Switch(OFF, BULKHEAD),
        "on",
        "How many operations run at once, and how many wait.",
    ),
    field(
        "retry",
        Switch(OFF, RETRY),
        "on",
        "When and how often a failed request is sent again.",
    ),
    field(
        "hedge",
        Switch(OFF, HEDGE),
        "off",
        "Sends a slow request a second time, in the place of a retry.",
    ),
    field("budget", Table(BUDGET), "on", "What pays for resends."),
    field(
        "breaker",
        Switch(OFF, BREAKER),
        "on",
        "Stops calling a dependency that fails.",
    ),
    field(
        "rate_limit",
        Switch(OFF, RATE_LIMIT),
        "off",
        "Lets attempts pass at a rate.",
    ),
    field(
        "defer",
        Switch(OFF, DEFER),
        "off",
        "Which answers mean \"not now\", and when such a request is sent again by the engine of the defer plane.",
    ),
    field(
        "connect_timeout",
        Limit("none"),
        "1s",
        "How long the making of a connection may take.",
    ),
    field(
        "body_idle",
        Limit("none"),
        "10s",
        "How long an answer's body may stall.",
    ),
];

/// Looks a setting up by its path.
pub(in crate::policy) fn find(path: &str) -> Option<&'static Field> {
    let mut fields = DEPENDENCY;
    let mut found = None;
    for key in path.split('.') {
        let field = fields.iter().find(|field| field.name == key)?;
        fields = match &field.kind {
            Table(inside) | Switch(_, inside) => inside,
            _ => &[],
        };
        found = Some(field);
    }
    found
}

/// The name of a setting, of which all files have one; any other name is copied.
pub(in crate::policy) fn name(key: &str) -> Cow<'static, str> {
    match known(DEPENDENCY, key) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(key.to_owned()),
    }
}

fn known(fields: &'static [Field], key: &str) -> Option<&'static str> {
    fields.iter().find_map(|field| match &field.kind {
        _ if field.name == key => Some(field.name),
        Table(inside) | Switch(_, inside) => known(inside, key),
        _ => None,
    })
}

pub(super) const LOAD_SHED: &[Field] = &[
    field(
        "max_in_flight",
        Count(1, MOST),
        "none",
        "How many operations may be under way.",
    ),
    field(
        "retry_after",
        Duration,
        "1s",
        "How long who was refused is asked to wait.",
    ),
];

const IDEMPOTENCY_KEY: &[Field] = &[
    field(
        "header",
        Text,
        "idempotency-key",
        "The header that carries it.",
    ),
    field(
        "form",
        Choice(&["quoted", "bare"]),
        "quoted",
        "How it is written.",
    ),
    field(
        "retention",
        Duration,
        "none",
        "How long the dependency remembers a key; it must be longer than an operation sends again.",
    ),
];

pub(super) const BULKHEAD: &[Field] = &[
    field(
        "max_concurrent",
        Count(1, 1_000_000),
        "64",
        "How many operations run at once.",
    ),
    field(
        "max_waiting",
        Count(0, 1_000_000),
        "64",
        "How many wait for a place.",
    ),
    field(
        "max_wait",
        Limit("deadline"),
        "100ms",
        "How long they wait.",
    ),
];

const RETRY: &[Field] = &[
    field(
        "max_attempts",
        Count(1, 100),
        "3",
        "How many attempts an operation makes, the original included.",
    ),
    field(
        "attempt_timeout",
        Limit("none"),
        "2s",
        "How long one attempt may take until its head is there.",
    ),
    field(
        "backoff",
        Table(BACKOFF),
        "on",
        "The waits between attempts.",
    ),
    field(
        "max_hint",
        Duration,
        "30s",
        "The longest wait that a server may ask for.",
    ),
    field(
        "min_attempt_time",
        Duration,
        "10ms",
        "The least time that another attempt needs.",
    ),
    field(
        "max_body",
        Count(0, 1 << 30),
        "65536",
        "How many bytes of a request's body are kept for a resend.",
    ),
    field(
        "also_retry",
        Statuses,
        "[]",
        "Statuses that are sent again besides the usual ones.",
    ),
    field(
        "never_retry",
        Statuses,
        "[]",
        "Statuses that are not sent again.",
    ),
    field(
        "methods",
        Words(METHODS),
        "the idempotent ones, as RFC 9110 has them, and QUERY",
        "Methods whose requests are sent again though nobody knows what became of the first; with a key, any is.",
    ),
];

const METHODS: &[&str] = &[
    "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PUT", "DELETE", "POST", "PATCH",
];

const BACKOFF: &[Field] = &[
    field("base", Duration, "100ms", "The first wait, before jitter."),
    field("cap", Duration, "2s", "The longest wait, before jitter."),
    field(
        "factor",
        Number(1.0, f64::MAX),
        "2",
        "How much longer each wait is than the one before.",
    ),
    field(
        "jitter",
        Choice(&["full", "equal", "decorrelated", "none"]),
        "full",
        "How waits are spread.",
    ),
];

const HEDGE: &[Field] = &[
    field(
        "max_attempts",
        Count(1, 10),
        "2",
        "How many attempts an operation makes, the original included.",
    ),
    field(
        "attempt_timeout",
        Limit("none"),
        "2s",
        "How long one attempt may take until its head is there.",
    ),
    field(
        "delay",
        Duration,
        "100ms",
        "After which time the second is sent, until enough answers were measured.",
    ),
    field(
        "percentile",
        Number(0.0, 1.0),
        "0.95",
        "The share of answers that come before the second is sent.",
    ),
    field(
        "max_extra_load",
        Number(0.0, 1.0),
        "0.1",
        "The most that hedges add, as a share of the operations.",
    ),
    field(
        "idempotent_only",
        Flag,
        "true",
        "Whether only idempotent requests are hedged.",
    ),
];

const BUDGET: &[Field] = &[
    field(
        "ratio",
        Number(0.0, f64::MAX),
        "0.2",
        "Resends as a share of the operations.",
    ),
    field(
        "min_per_second",
        Count(0, 1_000_000),
        "10",
        "Resends a second that are paid for however little traffic there is.",
    ),
    field(
        "max_concurrent",
        Count(1, 1_000_000),
        "none",
        "How many resends are under way at once, their waits included.",
    ),
];

const BREAKER: &[Field] = &[
    field(
        "observes",
        Choice(&["attempts", "operations"]),
        "attempts",
        "What it counts: every attempt, or what comes of an operation.",
    ),
    field(
        "consecutive_failures",
        Count(1, 1_000_000),
        "5",
        "Opens at so many failures in a row.",
    ),
    field(
        "failure_rate",
        Number(0.0, 1.0),
        "none",
        "Opens at this share of failures in the window.",
    ),
    field(
        "minimum_calls",
        Count(1, 1_000_000),
        "20",
        "Judges no rate before so many calls in the window.",
    ),
    field(
        "window",
        Duration,
        "10s",
        "The time over which calls are counted.",
    ),
    field(
        "slow_call",
        Duration,
        "none",
        "From which time on an answer counts as slow.",
    ),
    field(
        "slow_call_rate",
        Number(0.0, 1.0),
        "0.5",
        "Opens at this share of slow answers.",
    ),
    field(
        "open_wait",
        Duration,
        "5s",
        "How long it stays open the first time.",
    ),
    field(
        "open_wait_cap",
        Duration,
        "60s",
        "How long it stays open at most.",
    ),
    field(
        "probes",
        Count(1, 100),
        "3",
        "How many attempts a half-open breaker lets through at once.",
    ),
    field(
        "successes_to_close",
        Count(1, 100),
        "2",
        "How many of them must succeed before it closes.",
    ),
    field("shadow", Flag, "false", "Only tells what it would do."),
];

const RATE_LIMIT: &[Field] = &[
    field(
        "count",
        Count(1, 1_000_000_000),
        "none",
        "How many attempts pass in a period.",
    ),
    field("period", Duration, "1s", "The period."),
    field(
        "burst",
        Count(1, 1_000_000_000),
        "as many as a period",
        "How many pass at once after a pause.",
    ),
    field(
        "max_wait",
        Duration,
        "0s",
        "How long an attempt waits for its turn.",
    ),
];
