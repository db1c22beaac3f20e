//! The metric of queues of messages, which the feature `rabbitmq` writes.

use super::metric::{Kind, Metric, metric};
use crate::semconv::{MESSAGE_QUEUE, MESSAGE_STATE};

pub(crate) const DEPTH: Metric = metric(
    "mamparo.message.depth",
    Kind::ObservableGauge,
    "{message}",
    &[MESSAGE_QUEUE, MESSAGE_STATE],
    "Messages of a queue that are ready, wait to be tried again or are dead",
);
