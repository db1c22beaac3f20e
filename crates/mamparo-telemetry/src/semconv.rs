//! The names that we write: OpenTelemetry's semantic conventions 1.45.0, and our own under `mamparo.`.

/// The conventions that all names here follow.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.45.0";

/// The instrumentation scope of every span and metric of ours.
pub const SCOPE: &str = "mamparo";

/// What kind of error ended it; absent when none did.
pub const ERROR_TYPE: &str = "error.type";

/// The one value of `error.type` that the conventions fix: an error of no known kind.
pub const ERROR_TYPE_OTHER: &str = "_OTHER";

/// The request's method, [`METHOD_OTHER`] for one that is not known.
pub const HTTP_REQUEST_METHOD: &str = "http.request.method";

/// The method as it was sent, where `http.request.method` is not that.
pub const HTTP_REQUEST_METHOD_ORIGINAL: &str = "http.request.method_original";

/// Stands for a method that is not known.
pub const METHOD_OTHER: &str = "_OTHER";

/// Which resend of its operation an attempt is: 1, 2, …, and absent on the first send.
pub const HTTP_REQUEST_RESEND_COUNT: &str = "http.request.resend_count";

/// The answer's status.
pub const HTTP_RESPONSE_STATUS_CODE: &str = "http.response.status_code";

/// The protocol's version: `1.0`, `1.1`, `2` or `3`.
pub const NETWORK_PROTOCOL_VERSION: &str = "network.protocol.version";

/// The host that is called.
pub const SERVER_ADDRESS: &str = "server.address";

/// The port that is called.
pub const SERVER_PORT: &str = "server.port";

/// The address that is called, without secrets.
pub const URL_FULL: &str = "url.full";

/// The path that is asked for.
pub const URL_PATH: &str = "url.path";

/// The query, without secrets.
pub const URL_QUERY: &str = "url.query";

/// `http` or `https`.
pub const URL_SCHEME: &str = "url.scheme";

/// The route that a request matched: a template, and never the path.
pub const HTTP_ROUTE: &str = "http.route";

/// What the caller says of itself.
pub const USER_AGENT_ORIGINAL: &str = "user_agent.original";

/// The system of an RPC: [`RPC_SYSTEM_GRPC`].
pub const RPC_SYSTEM_NAME: &str = "rpc.system.name";

/// gRPC, as a system of RPCs.
pub const RPC_SYSTEM_GRPC: &str = "grpc";

/// The method of an RPC, `package.Service/Method`; [`METHOD_OTHER`] for one that is not known.
pub const RPC_METHOD: &str = "rpc.method";

/// The method as it was sent, where `rpc.method` is not that.
pub const RPC_METHOD_ORIGINAL: &str = "rpc.method_original";

/// The status of an RPC, by its name: `OK`, `DEADLINE_EXCEEDED`.
pub const RPC_STATUS_CODE: &str = "rpc.status_code";

/// How many attempts came before this one, transparent retries aside (gRFC A72).
pub const PREVIOUS_RPC_ATTEMPTS: &str = "previous-rpc-attempts";

/// Whether an attempt was sent again although no policy says so, as nobody had processed it (gRFC A72).
pub const TRANSPARENT_RETRY: &str = "transparent-retry";

/// The method of an RPC in gRPC's own metrics (gRFC A66).
pub const GRPC_METHOD: &str = "grpc.method";

/// The target of an RPC in gRPC's own metrics (gRFC A66).
pub const GRPC_TARGET: &str = "grpc.target";

/// How long a request takes to be served, in seconds.
pub const HTTP_SERVER_REQUEST_DURATION: &str = "http.server.request.duration";

/// How long an RPC takes with all of its attempts, in seconds.
pub const RPC_CLIENT_CALL_DURATION: &str = "rpc.client.call.duration";

/// How long an RPC takes to be served, in seconds.
pub const RPC_SERVER_CALL_DURATION: &str = "rpc.server.call.duration";

/// How long one physical send takes, in seconds.
pub const HTTP_CLIENT_REQUEST_DURATION: &str = "http.client.request.duration";

/// Where the buckets of every duration end, in seconds.
pub const DURATION_BOUNDARIES: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

/// The messaging system: [`MESSAGING_SYSTEM_RABBITMQ`].
pub const MESSAGING_SYSTEM: &str = "messaging.system";

/// RabbitMQ, as a messaging system.
pub const MESSAGING_SYSTEM_RABBITMQ: &str = "rabbitmq";

/// What is done with a message: `publish`, `process`.
pub const MESSAGING_OPERATION_NAME: &str = "messaging.operation.name";

/// The same in the words of the conventions: `send`, `process`.
pub const MESSAGING_OPERATION_TYPE: &str = "messaging.operation.type";

/// Where a message goes or comes from: of RabbitMQ `exchange:routing key`, and for who takes it `:queue` as well.
pub const MESSAGING_DESTINATION_NAME: &str = "messaging.destination.name";

/// The routing key that a message was published with.
pub const MESSAGING_RABBITMQ_ROUTING_KEY: &str = "messaging.rabbitmq.destination.routing_key";

/// The message's id.
pub const MESSAGING_MESSAGE_ID: &str = "messaging.message.id";

/// The queue of messages, by its name.
pub const MESSAGE_QUEUE: &str = "mamparo.message.queue";

/// Where messages of a queue are: `ready`, `retry` or `dead`.
pub const MESSAGE_STATE: &str = "mamparo.message.state";

/// Which attempt to handle the message it is, from 1.
pub const MESSAGE_ATTEMPT: &str = "mamparo.message.attempt";

/// The dependency that is called.
pub const DEPENDENCY: &str = "mamparo.dependency";

/// The operation's id, 16 hexadecimal digits.
pub const OPERATION_ID: &str = "mamparo.operation.id";

/// How many physical sends the operation made.
pub const OPERATION_ATTEMPTS: &str = "mamparo.operation.attempts";

/// How the operation ended.
pub const OPERATION_OUTCOME: &str = "mamparo.operation.outcome";

/// What one attempt's result means.
pub const ATTEMPT_VERDICT: &str = "mamparo.attempt.verdict";

/// Why something was done or refused.
pub const REASON: &str = "mamparo.reason";

/// The reason of a hedge for which no attempt has failed: the delay was over.
pub const REASON_DELAY: &str = "delay";

/// Whether the dependency may have seen what was rejected.
pub const SENT: &str = "mamparo.sent";

/// The state of the circuit breaker that decided last, or the one that it changed to.
pub const BREAKER_STATE: &str = "mamparo.breaker.state";

/// What the circuit breaker decided for the call.
pub const BREAKER_DECISION: &str = "mamparo.breaker.decision";

/// The key of a circuit breaker, where there is one a key.
pub const BREAKER_KEY: &str = "mamparo.breaker.key";

/// How long the call waited for its place, in seconds.
pub const QUEUE_WAIT: &str = "mamparo.queue.wait";

/// How many calls could have a place.
pub const QUEUE_LIMIT: &str = "mamparo.queue.limit";

/// How long the attempt waited for its turn under a rate limit, in seconds.
pub const RATE_LIMIT_WAIT: &str = "mamparo.rate_limit.wait";

/// What came of a fallback.
pub const FALLBACK_OUTCOME: &str = "mamparo.fallback.outcome";

/// The priority of a call, where priorities are told apart.
pub const PRIORITY: &str = "mamparo.priority";

/// What kind of transaction of the defer plane it is.
pub const DEFER_KIND: &str = "mamparo.defer.kind";

/// Where a transaction stands.
pub const DEFER_STATE: &str = "mamparo.defer.state";

/// The attempt, the original included; on metrics `16+` from the sixteenth on.
pub const DEFER_ATTEMPT: &str = "mamparo.defer.attempt";

/// Which schedule of the attempt was fired; 0 for the first.
pub const DEFER_SEQ: &str = "mamparo.defer.seq";

/// The queue of the defer plane.
pub const DEFER_QUEUE: &str = "mamparo.defer.queue";

/// What came of it: of an answer what the dependency said, of a fire what was decided.
pub const DEFER_OUTCOME: &str = "mamparo.defer.outcome";

/// The transaction's id; on spans only.
pub const DEFER_TRANSACTION: &str = "mamparo.defer.transaction";

/// The relay of an outbox, by its name.
pub const OUTBOX_RELAY: &str = "mamparo.outbox.relay";

/// How events of an outbox stand: `waiting` or `parked`.
pub const OUTBOX_STATE: &str = "mamparo.outbox.state";

/// What came of a reload of policies.
pub const POLICY_OUTCOME: &str = "mamparo.policy.outcome";
