//! Every metric that we write.

use super::metric::{Kind, Metric, counter, duration, metric};
use super::{deferred, messages, outbox};
use crate::semconv::{
    ATTEMPT_VERDICT, BREAKER_KEY, BREAKER_STATE, DEPENDENCY, ERROR_TYPE, FALLBACK_OUTCOME,
    GRPC_METHOD, GRPC_TARGET, HTTP_CLIENT_REQUEST_DURATION, HTTP_REQUEST_METHOD,
    HTTP_RESPONSE_STATUS_CODE, HTTP_ROUTE, HTTP_SERVER_REQUEST_DURATION, NETWORK_PROTOCOL_VERSION,
    OPERATION_OUTCOME, POLICY_OUTCOME, PRIORITY, REASON, RPC_CLIENT_CALL_DURATION, RPC_METHOD,
    RPC_SERVER_CALL_DURATION, RPC_STATUS_CODE, RPC_SYSTEM_NAME, SENT, SERVER_ADDRESS, SERVER_PORT,
    URL_SCHEME,
};

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

pub(super) const SERVED_DURATION: Metric = duration(
    HTTP_SERVER_REQUEST_DURATION,
    &[
        HTTP_REQUEST_METHOD,
        URL_SCHEME,
        HTTP_ROUTE,
        ERROR_TYPE,
        HTTP_RESPONSE_STATUS_CODE,
        NETWORK_PROTOCOL_VERSION,
    ],
    "How long a request took to be served, with its body",
);

pub(super) const RPC_DURATION: Metric = duration(
    RPC_CLIENT_CALL_DURATION,
    &[
        RPC_SYSTEM_NAME,
        RPC_METHOD,
        RPC_STATUS_CODE,
        SERVER_ADDRESS,
        SERVER_PORT,
        ERROR_TYPE,
    ],
    "How long an RPC took, with all of its attempts and its stream",
);

pub(super) const SERVED_RPC_DURATION: Metric = duration(
    RPC_SERVER_CALL_DURATION,
    &[RPC_SYSTEM_NAME, RPC_METHOD, RPC_STATUS_CODE, ERROR_TYPE],
    "How long an RPC took to be served, with its stream",
);

const BY_METHOD: &[&str] = &[GRPC_METHOD, GRPC_TARGET];

pub(super) const GRPC_RETRIES: Metric = metric(
    "grpc.client.call.retries",
    Kind::Histogram,
    "{retry}",
    BY_METHOD,
    "How often an RPC was sent again after a failure, where it was; on request",
);

pub(super) const GRPC_TRANSPARENT_RETRIES: Metric = metric(
    "grpc.client.call.transparent_retries",
    Kind::Histogram,
    "{transparent_retry}",
    BY_METHOD,
    "How often an RPC was sent again as nobody had processed it, where it was; on request",
);

pub(super) const GRPC_HEDGES: Metric = metric(
    "grpc.client.call.hedges",
    Kind::Histogram,
    "{hedge}",
    BY_METHOD,
    "How many hedges an RPC had, where it had any; on request",
);

pub(super) const GRPC_RETRY_DELAY: Metric = duration(
    "grpc.client.call.retry_delay",
    BY_METHOD,
    "For how long an RPC had no attempt under way, where it was sent again; on request",
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

pub(super) const DEADLINE_REMAINING: Metric = duration(
    "mamparo.deadline.remaining.duration",
    &[DEPENDENCY],
    "How long an operation had when it began, where it inherited its deadline",
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

pub(super) const BUDGET_TOKENS: Metric = metric(
    "mamparo.budget.tokens",
    Kind::ObservableGauge,
    "{resend}",
    &[DEPENDENCY],
    "Resends that the budget would pay for at once",
);

pub(super) const SHADOW_REJECTIONS: Metric = counter(
    "mamparo.shadow_rejections",
    "{rejection}",
    &[DEPENDENCY, REASON],
    "Calls that a layer in shadow mode let pass and would have refused",
);

pub(super) const BREAKER_TRANSITIONS: Metric = counter(
    "mamparo.breaker.transitions",
    "{transition}",
    &[DEPENDENCY, BREAKER_STATE, REASON],
    "Changes of a circuit breaker's state, by the new one and why",
);

pub(super) const BREAKER_LEVEL: Metric = metric(
    "mamparo.breaker.state",
    Kind::ObservableGauge,
    "{state}",
    &[DEPENDENCY, BREAKER_KEY],
    "The state of a circuit breaker: 0 lets all calls pass, 1 probes, 2 none",
);

pub(super) const BULKHEAD_IN_FLIGHT: Metric = metric(
    "mamparo.bulkhead.in_flight",
    Kind::ObservableUpDownCounter,
    "{call}",
    &[DEPENDENCY],
    "Calls that hold a place",
);

pub(super) const BULKHEAD_QUEUED: Metric = metric(
    "mamparo.bulkhead.queued",
    Kind::ObservableUpDownCounter,
    "{call}",
    &[DEPENDENCY],
    "Calls that wait for a place",
);

pub(super) const BULKHEAD_LIMIT: Metric = metric(
    "mamparo.bulkhead.limit",
    Kind::ObservableUpDownCounter,
    "{call}",
    &[DEPENDENCY],
    "Calls that may hold a place",
);

pub(super) const BULKHEAD_WAIT: Metric = duration(
    "mamparo.bulkhead.wait.duration",
    &[DEPENDENCY],
    "How long calls waited for a place that they got, those that had to wait",
);

pub(super) const RATE_LIMIT_WAIT: Metric = duration(
    "mamparo.rate_limit.wait.duration",
    &[DEPENDENCY],
    "How long calls waited for their turn, those that had to wait",
);

pub(super) const RATE_LIMIT_PAUSES: Metric = counter(
    "mamparo.rate_limit.pauses",
    "{pause}",
    &[DEPENDENCY],
    "Pauses that the dependency's own rate limit asked for",
);

pub(super) const HEDGES: Metric = counter(
    "mamparo.hedges",
    "{hedge}",
    &[DEPENDENCY, REASON],
    "Attempts sent beside others, or for one that failed, by why",
);

pub(super) const WON_HEDGES: Metric = counter(
    "mamparo.won_hedges",
    "{hedge}",
    &[DEPENDENCY],
    "Hedges that gave their operation its answer",
);

pub(super) const REFUSED_HEDGES: Metric = counter(
    "mamparo.refused_hedges",
    "{hedge}",
    &[DEPENDENCY, REASON],
    "Hedges that were not sent, by why not",
);

pub(super) const FALLBACKS: Metric = counter(
    "mamparo.fallbacks",
    "{fallback}",
    &[DEPENDENCY, FALLBACK_OUTCOME],
    "Failed operations that were to fall back, by what came of it",
);

pub(super) const SHED_CALLS: Metric = counter(
    "mamparo.shed_calls",
    "{call}",
    &[DEPENDENCY, REASON, PRIORITY],
    "Calls that were shed, by which rule",
);

pub(super) const IDEMPOTENCY_KEYS: Metric = counter(
    "mamparo.idempotency_keys",
    "{step}",
    &[REASON],
    "What happened to idempotency keys on this server",
);

pub(super) const INJECTED_FAULTS: Metric = counter(
    "mamparo.injected_faults",
    "{fault}",
    &[DEPENDENCY, REASON],
    "Faults that were injected on purpose",
);

pub(super) const POLICY_RELOADS: Metric = counter(
    "mamparo.policy.reloads",
    "{reload}",
    &[POLICY_OUTCOME],
    "Reloads of the policies, by whether they were applied or refused",
);

/// Every metric that we write, in the order of the table in `docs/metrics.md`.
pub const CATALOG: &[Metric] = &[
    OPERATIONS,
    OPERATION_DURATION,
    RESENT_OPERATIONS,
    RECOVERED_OPERATIONS,
    ATTEMPTS,
    REQUEST_DURATION,
    RPC_DURATION,
    SERVED_DURATION,
    SERVED_RPC_DURATION,
    GRPC_RETRIES,
    GRPC_TRANSPARENT_RETRIES,
    GRPC_HEDGES,
    GRPC_RETRY_DELAY,
    RESENDS,
    REFUSED_RESENDS,
    BUDGET_CONSUMED,
    BUDGET_ALLOWED,
    BUDGET_TOKENS,
    REJECTIONS,
    LATE_WORK,
    DEADLINE_REMAINING,
    DOUBTED_DEADLINES,
    NESTED_RETRIES,
    SHADOW_REJECTIONS,
    BREAKER_TRANSITIONS,
    BREAKER_LEVEL,
    BULKHEAD_IN_FLIGHT,
    BULKHEAD_QUEUED,
    BULKHEAD_LIMIT,
    BULKHEAD_WAIT,
    RATE_LIMIT_WAIT,
    RATE_LIMIT_PAUSES,
    HEDGES,
    WON_HEDGES,
    REFUSED_HEDGES,
    FALLBACKS,
    SHED_CALLS,
    IDEMPOTENCY_KEYS,
    INJECTED_FAULTS,
    POLICY_RELOADS,
    deferred::ANSWERS,
    deferred::SCHEDULES,
    deferred::POSTPONEMENTS,
    deferred::FORGOTTEN,
    deferred::FIRES,
    deferred::LAG,
    deferred::ALERTS,
    deferred::TRANSACTIONS,
    deferred::OLDEST,
    deferred::OVERDUE,
    deferred::OVERDUE_AGE,
    deferred::DEAD_LETTERS,
    deferred::BURIED,
    outbox::EVENTS,
    outbox::LAG,
    outbox::PUBLISHED,
    outbox::UNCONFIRMED,
    messages::DEPTH,
];
