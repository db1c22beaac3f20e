//! The settings of the server: what it takes, refuses, and how it stops.

use super::Field;
use super::dependency::{BULKHEAD, LOAD_SHED, field};
use super::field::Kind::{Choice, Count, Duration, Flag, Number, Switch, Table, Text, Texts};

const OFF: &[&str] = &["off"];

pub(in crate::policy) const SERVER: &[Field] = &[
    field(
        "max_deadline",
        Duration,
        "60s",
        "How long any request may take, whatever its caller asks for.",
    ),
    field(
        "default_deadline",
        Duration,
        "max_deadline",
        "How long a request may take whose caller sets no deadline.",
    ),
    field(
        "malformed_deadline",
        Choice(&["ignore", "refuse"]),
        "ignore",
        "What becomes of a request whose deadline can't be read.",
    ),
    field(
        "timeout_status",
        Count(400, 599),
        "504",
        "The status that says that the server's own deadline has passed.",
    ),
    field(
        "retry_after_jitter",
        Number(0.0, 10.0),
        "0.5",
        "By which share of it a wait that is told is lengthened at most.",
    ),
    field(
        "exhausted_header",
        Text,
        "x-mamparo-retry",
        "The header that tells callers that all attempts are spent, or \"off\".",
    ),
    field(
        "hide_dependencies",
        Flag,
        "false",
        "Tells callers nothing of the names of dependencies.",
    ),
    field(
        "rate_limit",
        Switch(OFF, RATE_LIMIT),
        "off",
        "How often each caller may ask.",
    ),
    field(
        "load_shed",
        Switch(OFF, LOAD_SHED),
        "off",
        "Refuses requests while the load is too high.",
    ),
    field(
        "bulkhead",
        Switch(OFF, BULKHEAD),
        "off",
        "How many requests run at once, and how many wait.",
    ),
    field(
        "idempotency",
        Switch(OFF, IDEMPOTENCY),
        "off",
        "How requests with an idempotency key are recognised; the store is given in code.",
    ),
    field(
        "stop",
        Table(STOP),
        "on",
        "How long the server takes to stop.",
    ),
];

const RATE_LIMIT: &[Field] = &[
    field(
        "count",
        Count(1, 1_000_000_000),
        "none",
        "How many requests of a caller pass in a period.",
    ),
    field("period", Duration, "1s", "The period."),
    field(
        "burst",
        Count(1, 1_000_000_000),
        "as many as a period",
        "How many pass at once after a pause.",
    ),
    field(
        "key",
        Choice(&["address", "principal", "header", "all"]),
        "address",
        "Who is one caller; with \"all\", they share one limit.",
    ),
    field(
        "header",
        Text,
        "none",
        "The header by which callers are told apart, with key = \"header\".",
    ),
    field(
        "trusted_proxies",
        Texts,
        "none",
        "The networks of the proxies that say for whom they ask, such as 10.0.0.0/8.",
    ),
    field(
        "forwarded",
        Choice(&["x-forwarded-for", "forwarded"]),
        "x-forwarded-for",
        "The field in which they say so.",
    ),
    field(
        "max_keys",
        Count(1, 100_000_000),
        "10000",
        "For how many callers a limit is kept.",
    ),
    field(
        "told_as",
        Text,
        "rate-limit",
        "The limit's name, as callers are told.",
    ),
    field(
        "fields",
        Choice(&["draft", "legacy", "both", "off"]),
        "draft",
        "Which fields tell callers what is left: RateLimit, X-RateLimit-*, both or none.",
    ),
];

const STOP: &[Field] = &[
    field(
        "delay",
        Duration,
        "0s",
        "How long new requests are still taken once the server is not ready.",
    ),
    field(
        "grace",
        Duration,
        "30s",
        "How long requests in flight may take after that.",
    ),
    field(
        "flush",
        Duration,
        "5s",
        "How long telemetry may take to be flushed.",
    ),
];

const IDEMPOTENCY: &[Field] = &[
    field(
        "key",
        Choice(&["principal", "header", "all"]),
        "none",
        "Whose a key is: the principal's, a header's value's, or everybody's alike.",
    ),
    field(
        "header",
        Text,
        "none",
        "The header by which callers are told apart, with key = \"header\".",
    ),
    field(
        "key_header",
        Text,
        "idempotency-key",
        "The header that carries the key.",
    ),
    field(
        "syntax",
        Choice(&["lenient", "strict"]),
        "lenient",
        "Whether a key may be bare, or must be a structured field string.",
    ),
    field(
        "longest_key",
        Count(1, 1024),
        "255",
        "How many characters a key may have.",
    ),
    field(
        "required",
        Flag,
        "false",
        "Refuses requests without a key, of the methods whose keys count.",
    ),
    field(
        "methods",
        Texts,
        "POST, PATCH",
        "The methods whose keys count.",
    ),
    field(
        "stored",
        Choice(&["all", "not_server_errors", "successes"]),
        "all",
        "Which answers are stored; after others the request is run again.",
    ),
    field(
        "retention",
        Duration,
        "1d",
        "How long an answer is kept and given again.",
    ),
    field(
        "retry_horizon",
        Duration,
        "0s",
        "For how long callers may go on trying; a shorter retention is refused.",
    ),
    field(
        "lease",
        Duration,
        "30s",
        "How long a key belongs to a runner that says nothing any more.",
    ),
    field(
        "on_expiry",
        Choice(&["indeterminate", "run_again"]),
        "indeterminate",
        "What becomes of a key whose runner is gone without a word.",
    ),
    field(
        "indeterminate_status",
        Count(409, 500),
        "500",
        "The status that says that nobody knows whether it was done: 500 or 409.",
    ),
    field(
        "on_store_failure",
        Choice(&["refuse", "run_unprotected"]),
        "refuse",
        "What a request with a key gets while the store fails.",
    ),
    field(
        "store_timeout",
        Duration,
        "2s",
        "How long the store may take for one step.",
    ),
    field(
        "retry_after",
        Duration,
        "1s",
        "When a caller should ask again whose request is being run.",
    ),
    field(
        "request_limit",
        Count(0, 16_777_216),
        "262144",
        "Up to how many bytes a request's body is compared.",
    ),
    field(
        "answer_limit",
        Count(0, 16_777_216),
        "262144",
        "Up to how many bytes an answer's body is kept.",
    ),
    field(
        "namespace",
        Text,
        "none",
        "Keeps these keys apart from others in the same store.",
    ),
    field(
        "documentation",
        Text,
        "none",
        "The page on which callers read of the keys; refusals link to it.",
    ),
];
