//! Every metric that we write.

use crate::semconv::{
    ATTEMPT_VERDICT, DEPENDENCY, ERROR_TYPE, HTTP_CLIENT_REQUEST_DURATION, HTTP_REQUEST_METHOD,
    HTTP_RESPONSE_STATUS_CODE, NETWORK_PROTOCOL_VERSION, OPERATION_OUTCOME, REASON, SENT,
    SERVER_ADDRESS, SERVER_PORT,
};

/// A metric: its name, what it measures and by what it is broken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// The kind of its instrument.
    pub kind: Kind,
    /// Its unit, in UCUM's notation.
    pub unit: &'static str,
    /// Its attributes.
    pub attributes: &'static [&'static str],
    /// What it says.
    pub says: &'static str,
}

/// The kind of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Counts.
    Counter,
    /// Counts, and is read when metrics are collected.
    ObservableCounter,
    /// Spreads durations over buckets.
    Histogram,
}

impl Kind {
    /// Returns the kind's name, as OpenTelemetry writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "Counter",
            Self::ObservableCounter => "ObservableCounter",
            Self::Histogram => "Histogram",
        }
    }
}

const fn counter(
    name: &'static str,
    unit: &'static str,
    attributes: &'static [&'static str],
    says: &'static str,
) -> Metric {
    metric(name, Kind::Counter, unit, attributes, says)
}

const fn duration(
    name: &'static str,
    attributes: &'static [&'static str],
    says: &'static str,
) -> Metric {
    metric(name, Kind::Histogram, "s", attributes, says)
}

const fn metric(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    attributes: &'static [&'static str],
    says: &'static str,
) -> Metric {
    Metric {
        name,
        kind,
        unit,
        attributes,
        says,
    }
}

pub(super) const OPERATIONS: Metric = counter(
    "mamparo.operations",
    "{operation}",
    &[DEPENDENCY, OPERATION_OUTCOME],
    "Operations that ended",
);

pub(super) const OPERATION_DURATION: Metric = duration(
    "mamparo.operation.duration",
    &[DEPENDENCY, OPERATION_OUTCOME],
    "How long an operation took, with its waits and its body",
);

pub(super) const RESENT_OPERATIONS: Metric = counter(
    "mamparo.resent_operations",
    "{operation}",
    &[DEPENDENCY],
    "Operations that were sent more than once",
);

pub(super) const RECOVERED_OPERATIONS: Metric = counter(
    "mamparo.recovered_operations",
    "{operation}",
    &[DEPENDENCY],
    "Operations that were sent more than once and succeeded",
);

pub(super) const ATTEMPTS: Metric = counter(
    "mamparo.attempts",
    "{attempt}",
    &[DEPENDENCY, ATTEMPT_VERDICT],
    "Physical sends that ended",
);

pub(super) const REQUEST_DURATION: Metric = duration(
    HTTP_CLIENT_REQUEST_DURATION,
    &[
        HTTP_REQUEST_METHOD,
        SERVER_ADDRESS,
        SERVER_PORT,
        ERROR_TYPE,
        HTTP_RESPONSE_STATUS_CODE,
        NETWORK_PROTOCOL_VERSION,
    ],
    "How long one physical send took, with its body",
);

pub(super) const RESENDS: Metric = counter(
    "mamparo.resends",
    "{resend}",
    &[DEPENDENCY, REASON],
    "Resends that were scheduled, by how the attempt before failed",
);

pub(super) const REFUSED_RESENDS: Metric = counter(
    "mamparo.refused_resends",
    "{resend}",
    &[DEPENDENCY, REASON],
    "Failed attempts that were not sent again, by why not",
);

pub(super) const REJECTIONS: Metric = counter(
    "mamparo.rejections",
    "{rejection}",
    &[DEPENDENCY, REASON, SENT],
    "Calls that a layer refused, or cut after they were sent",
);

pub(super) const LATE_WORK: Metric = duration(
    "mamparo.late_work.duration",
    &[DEPENDENCY],
    "How long work went on after its deadline",
);

pub(super) const DOUBTED_DEADLINES: Metric = counter(
    "mamparo.doubted_deadlines",
    "{deadline}",
    &[REASON],
    "Callers' deadlines that were not taken as they came",
);

pub(super) const NESTED_RETRIES: Metric = counter(
    "mamparo.nested_retries",
    "{operation}",
    &[DEPENDENCY],
    "Operations with a retry inside another retry",
);

pub(super) const BUDGET_CONSUMED: Metric = metric(
    "mamparo.budget.consumed",
    Kind::ObservableCounter,
    "{resend}",
    &[DEPENDENCY],
    "Resends that the budget paid for",
);

pub(super) const BUDGET_ALLOWED: Metric = metric(
    "mamparo.budget.allowed",
    Kind::ObservableCounter,
    "{resend}",
    &[DEPENDENCY],
    "Resends that the budget would have paid for",
);

/// Every metric that we write, in the order of the table in `docs/metrics.md`.
pub const CATALOG: &[Metric] = &[
    OPERATIONS,
    OPERATION_DURATION,
    RESENT_OPERATIONS,
    RECOVERED_OPERATIONS,
    ATTEMPTS,
    REQUEST_DURATION,
    RESENDS,
    REFUSED_RESENDS,
    BUDGET_CONSUMED,
    BUDGET_ALLOWED,
    REJECTIONS,
    LATE_WORK,
    DOUBTED_DEADLINES,
    NESTED_RETRIES,
];
