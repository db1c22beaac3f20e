//! The headers that are ours. Everything else about a message is kept as its producer made it.

/// How many attempts were made already; absent is none.
pub const ATTEMPTS: &str = "x-attempts";

/// Why a dead letter is one: `permanent`, `exhausted`, `panic`, `too-big`.
pub const DEAD_REASON: &str = "x-dead-reason";

/// What the last attempt said.
pub const DEAD_DETAIL: &str = "x-dead-detail";

/// When it became one, as RFC 3339 writes it, UTC.
pub const DEAD_AT: &str = "x-dead-at";

/// Who answers for the queue.
pub const OWNER: &str = "x-owner";

/// What to do about its dead letters.
pub const RUNBOOK: &str = "x-runbook";

/// When a dead letter was put back last, as RFC 3339 writes it, UTC.
pub const REPROCESSED: &str = "x-reprocessed";

/// The exchange that the producer published to.
pub const ORIGIN_EXCHANGE: &str = "x-origin-exchange";

/// The routing key that the producer used.
pub const ORIGIN_ROUTING_KEY: &str = "x-origin-routing-key";

/// The producer's `expiration`: left in place, a copy would vanish when it is over.
pub const ORIGIN_EXPIRATION: &str = "x-origin-expiration";

/// The producer's `user-id`: RabbitMQ refuses a copy that carries another user's.
pub const ORIGIN_USER: &str = "x-origin-user-id";

/// The producer's `CC`: left in place, each copy would go to those queues once more.
pub const ORIGIN_CC: &str = "x-origin-cc";

/// The number of a dead letter of the defer plane's: milliseconds since 1970 when it was buried, times 4 096, and something.
pub const DEAD_NUMBER: &str = "x-dead-number";

/// Not to be handled before then, in milliseconds since 1970: the wait is longer than the longest delay that has a queue.
pub const NOT_BEFORE: &str = "x-not-before";

/// When a message of the defer plane's was published first, in milliseconds since 1970.
pub const PUBLISHED_AT: &str = "x-published-at";

/// The transaction that a request is of.
pub const TRANSACTION: &str = "x-transaction-id";

/// The attempt that a request is.
pub const ATTEMPT: &str = "x-transaction-attempt";

/// Which schedule of its attempt a request is of; its answer must carry it, and the attempt.
pub const SEQ: &str = "x-transaction-seq";

/// What kind of transaction a request is of.
pub const KIND: &str = "x-transaction-kind";

/// The dependency that a request goes to.
pub const DEPENDENCY: &str = "x-transaction-dependency";

/// The trace context of a request's original (W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";

/// Why a dead letter of the defer plane's was discarded.
pub const DISCARD_REASON: &str = "x-discard-reason";

/// What only a dead letter has.
pub(crate) const OF_DEAD: [&str; 6] = [
    DEAD_REASON,
    DEAD_DETAIL,
    DEAD_AT,
    DEAD_NUMBER,
    OWNER,
    RUNBOOK,
];

/// What the broker writes itself. It takes a message that bears them for one that goes in circles, and drops it.
pub(crate) const OF_THE_BROKER: [&str; 9] = [
    "x-death",
    "x-first-death-exchange",
    "x-first-death-queue",
    "x-first-death-reason",
    "x-last-death-exchange",
    "x-last-death-queue",
    "x-last-death-reason",
    "x-delivery-count",
    "x-acquired-count",
];
