//! Cases of the suite that every backend runs, over schedules that fire and over what fails.
//!
//! `whole` runs them all, over messages that wait.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock::SystemClock;
use mamparo_durable::backend::{Backend, Queue, QueueName};
use mamparo_durable::memory::Memory;

use super::harness::{Harness, Manner};
use super::resources;
use crate::Aws;
use crate::queue::SqsQueue;
use crate::scheduler::EventBridge;

/// Queues and scheduler of AWS beside a store in memory; what is due within `near` goes straight to the queue, or nothing.
fn beside_memory(aws: &Aws, near: Option<Duration>) -> Backend {
    let store = Memory::new(SystemClock).backend().store().clone();
    let queues = QueueName::ALL.map(|name| SqsQueue::new(aws, name));
    let [_, fires, _] = &queues;
    let scheduler = EventBridge::nearer(aws, fires, near);
    let queues = queues.map(|queue| Arc::new(queue) as Arc<dyn Queue>);
    Backend::new(store, Arc::new(scheduler), queues)
}

/// Whatever is not past is a schedule, which fires when it is due.
mod by_schedule {
    use super::*;

    async fn fresh() -> (Backend, Harness) {
        let aws = resources::fresh().await;
        let harness = Harness::start(&aws, Manner::PROMPT);
        (beside_memory(&aws, Some(Duration::ZERO)), harness)
    }

    mamparo_durable::conformance_cases! { fresh;
        scheduler: a_schedule_made_twice_is_one, a_schedule_fires_when_it_is_due_and_never_before,
            the_past_fires_at_once_and_the_year_9999_does_not, a_deleted_schedule_does_not_fire,
            whoever_waits_wakes_for_the_earliest;
    }
}

/// All are schedules, and fire late, early and twice.
mod by_bad_schedule {
    use super::*;

    async fn fresh() -> (Backend, Harness) {
        let aws = resources::fresh().await;
        let harness = Harness::start(&aws, Manner::UNRELIABLE);
        (beside_memory(&aws, None), harness)
    }

    mamparo_durable::conformance_cases! { fresh;
        failures: whoever_dies_at_any_point_the_redelivery_ends_it_well,
            a_fire_that_comes_before_the_confirmation_is_accepted, a_fire_that_comes_twice_sends_one_attempt,
            the_last_refusal_fails_it_and_tells_the_business;
        recovery: of_handlers_that_race_for_one_transaction_none_loses_it, every_message_handled_twice_is_as_if_once;
    }
}

/// Requests are throttled, fail, and are done in part.
mod over_a_bad_wire {
    use super::*;
    use crate::tests::strict::Strict;
    use crate::tests::support::behind_proxy_with;

    async fn fresh() -> (Backend, (Harness, Strict)) {
        let (aws, strict) = behind_proxy_with(|settings| settings.attempts(8)).await;
        strict.weather();
        let harness = Harness::start(&resources::straight(&aws).await, Manner::PROMPT);
        (beside_memory(&aws, None), (harness, strict))
    }

    mamparo_durable::conformance_cases! { fresh;
        failures: an_open_breaker_postpones_and_spends_no_attempt, a_fire_among_the_dead_letters_can_be_sent_back;
        recovery: of_handlers_that_race_for_one_transaction_none_loses_it;
        handlers: operators_move_fire_cancel_and_resolve;
    }
}
