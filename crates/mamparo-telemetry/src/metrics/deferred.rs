//! The metrics of the defer plane, which the feature `durable` writes.

use super::metric::{Metric, counter, duration, gauge};
use crate::semconv::{
    DEFER_ATTEMPT, DEFER_KIND, DEFER_OUTCOME, DEFER_QUEUE, DEFER_STATE, DEPENDENCY, REASON,
};

pub(crate) const ANSWERS: Metric = counter(
    "mamparo.defer.answers",
    "{answer}",
    &[DEFER_KIND, DEFER_OUTCOME],
    "Answers that counted, each once, by what the dependency said",
);

pub(crate) const SCHEDULES: Metric = counter(
    "mamparo.defer.schedules",
    "{schedule}",
    &[DEFER_KIND, REASON],
    "Schedules that were made, by why",
);

pub(crate) const POSTPONEMENTS: Metric = counter(
    "mamparo.defer.postponements",
    "{postponement}",
    &[DEPENDENCY, REASON],
    "Attempts that wait again and of which none is spent, by why",
);

pub(crate) const FORGOTTEN: Metric = counter(
    "mamparo.defer.forgotten_transactions",
    "{transaction}",
    &[],
    "Transactions that were removed from the store, some time after their end",
);

pub(crate) const FIRES: Metric = counter(
    "mamparo.defer.fires",
    "{fire}",
    &[DEFER_OUTCOME],
    "Fires that were handled, by what was decided",
);

pub(crate) const LAG: Metric = duration(
    "mamparo.defer.lag.duration",
    &[DEFER_QUEUE],
    "How long after it was published, a fire after it was due, a message was handled",
);

pub(crate) const ALERTS: Metric = counter(
    "mamparo.defer.alerts",
    "{alert}",
    &[REASON],
    "What a person should hear of, by what it is",
);

pub(crate) const TRANSACTIONS: Metric = gauge(
    "mamparo.defer.transactions",
    "{transaction}",
    &[DEFER_STATE, DEFER_ATTEMPT],
    "Transactions in the store, by state and current attempt",
);

pub(crate) const OLDEST: Metric = gauge(
    "mamparo.defer.oldest_transaction.age",
    "s",
    &[],
    "How long the oldest transaction has been under way that is not at its end",
);

pub(crate) const OVERDUE: Metric = gauge(
    "mamparo.defer.overdue_transactions",
    "{transaction}",
    &[],
    "Transactions that wait past their instant",
);

pub(crate) const OVERDUE_AGE: Metric = gauge(
    "mamparo.defer.overdue.age",
    "s",
    &[],
    "How late the transaction is that is overdue for the longest",
);

pub(crate) const DEAD_LETTERS: Metric = gauge(
    "mamparo.defer.dead_letters",
    "{message}",
    &[DEFER_QUEUE],
    "Dead letters in the store",
);

pub(crate) const BURIED: Metric = counter(
    "mamparo.defer.buried_messages",
    "{message}",
    &[DEFER_QUEUE],
    "Messages that became dead letters, as seen from one look to the next",
);
