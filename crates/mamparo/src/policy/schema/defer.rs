//! The settings of the defer plane.

use super::dependency::field;
use super::field::Field;
use super::field::Kind::{Count, Duration, Flag, Number, Statuses, Table, Text, Texts};

/// The settings of `defer`.
pub(super) const DEFER: &[Field] = &[
    field(
        "refused",
        Statuses,
        "[]",
        "Statuses that mean \"not now\": an attempt is spent, and the next one waits.",
    ),
    field(
        "declined",
        Statuses,
        "[]",
        "Statuses that mean \"never\", besides every 4xx but 408, 425 and 429.",
    ),
    field(
        "field",
        Text,
        "none",
        "The field of a JSON answer that says how it went, whatever the status; `a.b` is `b` of `a`.",
    ),
    field(
        "refused_values",
        Texts,
        "[]",
        "Values of that field that mean \"not now\".",
    ),
    field(
        "declined_values",
        Texts,
        "[]",
        "Values of that field that mean \"never\".",
    ),
    field(
        "rejections",
        Flag,
        "false",
        "Whether a layer around a client defers what the stack refuses to send: an open breaker, a full bulkhead. The engine always does.",
    ),
    field(
        "failures",
        Flag,
        "false",
        "Whether a layer around a client defers technical failures too, if the request can be sent again. The engine always does.",
    ),
    field(
        "max_attempts",
        Count(1, 1_000),
        "4",
        "How many attempts are made, the original included.",
    ),
    field(
        "max_postponements",
        Count(0, 1_000_000),
        "100",
        "How many technical failures and postponements by the breaker are borne.",
    ),
    field(
        "give_up_after",
        Duration,
        "7d",
        "For how long technical failures, lost answers and an open breaker are borne.",
    ),
    field(
        "wait",
        Table(WAIT),
        "2h, factor 2, up to 24h",
        "The waits after refusals.",
    ),
    field(
        "technical_wait",
        Table(WAIT),
        "30s, factor 2, up to 1h",
        "The waits after technical failures, of the same attempt.",
    ),
    field(
        "postponed_wait",
        Table(WAIT),
        "1m, factor 2, up to 1h",
        "The waits while the breaker is open and does not say until when.",
    ),
];

const WAIT: &[Field] = &[
    field(
        "base",
        Duration,
        "see above",
        "The first wait, before jitter.",
    ),
    field(
        "cap",
        Duration,
        "see above",
        "The longest wait, before jitter.",
    ),
    field(
        "factor",
        Number(1.0, 100.0),
        "2",
        "How much longer each wait is than the one before.",
    ),
    field(
        "jitter",
        Number(0.0, 1.0),
        "0.1",
        "How far a wait is spread, as a share of it, to either side.",
    ),
    field(
        "hard_cap",
        Flag,
        "false",
        "Whether the cap holds after the jitter too.",
    ),
];
