//! One test a case.

/// Makes one `#[tokio::test]` for each case of the suite. Takes an async function that returns a fresh, empty
/// [`Backend`](crate::backend::Backend) and whatever must live as long.
#[macro_export]
macro_rules! conformance {
    ($fresh:ident) => {
        $crate::conformance_cases! { $fresh;
            store: a_transaction_begins_once, what_is_stored_is_read_back_whole, a_write_applies_once_and_only_as_expected,
                no_next_attempt_is_part_of_the_condition, an_unknown_transaction_is_none, one_write_that_misses_stops_no_other,
                of_writers_that_race_one_wins, history_is_read_in_order_and_in_pages;
            queries: what_is_stuck_is_found_and_nothing_else, transactions_are_listed_in_pages_each_once,
                the_census_counts_by_state_and_attempt, what_ended_long_ago_is_forgotten_and_nothing_else;
            scheduler: a_schedule_made_twice_is_one, a_schedule_fires_when_it_is_due_and_never_before,
                the_past_fires_at_once_and_the_year_9999_does_not, a_deleted_schedule_does_not_fire,
                whoever_waits_wakes_for_the_earliest, many_that_are_due_together_fire_once_each;
            queue: a_message_comes_back_whole, a_message_is_taken_by_one, what_is_acknowledged_does_not_come_again,
                whoever_lost_the_lease_changes_nothing, a_lease_that_is_extended_is_held,
                what_is_released_comes_again_after_its_delay, what_comes_back_too_often_is_buried,
                a_dead_letter_is_kept_until_it_is_put_back_or_discarded, a_dead_letter_goes_back_into_its_own_queue,
                the_depth_tells_what_is_where, whoever_waits_wakes_when_there_is_something;
            outbox: a_step_is_done_wholly, a_step_that_misses_leaves_nothing, one_step_that_misses_stops_no_other,
                a_step_may_begin_a_transaction, a_conflict_is_told_and_the_rest_is_done,
                whoever_lost_the_lease_acknowledges_nothing, what_is_due_for_a_dependency_is_postponed_together;
            failures: whoever_dies_at_any_point_the_redelivery_ends_it_well,
                a_fire_that_comes_before_the_confirmation_is_accepted, a_fire_among_the_dead_letters_can_be_sent_back,
                a_fire_that_comes_twice_sends_one_attempt, an_answer_to_an_older_attempt_is_dropped,
                the_last_refusal_fails_it_and_tells_the_business, technical_failures_spend_postponements_and_no_attempt,
                a_fire_that_finds_it_resolved_is_dropped, an_open_breaker_postpones_and_spends_no_attempt,
                a_lost_answer_is_asked_for_again_and_given_up_at_last,
                a_handler_that_read_what_was_true_before_decides_again;
            recovery: the_reconciler_revives_each_intermediate_state,
                an_answer_that_is_given_up_is_told_whoever_dies, a_cycle_counts_what_it_found_mended_and_failed,
                of_handlers_that_race_for_one_transaction_none_loses_it, every_message_handled_twice_is_as_if_once,
                a_message_about_an_unknown_transaction_is_buried_and_told, a_changed_policy_touches_nothing_that_waits;
            handlers: an_original_that_the_engine_sends_is_sent_whoever_dies, a_transaction_may_begin_with_its_refusal,
                operators_move_fire_cancel_and_resolve;
            limits: a_burst_passes_and_then_the_rate, each_name_has_a_limit_of_its_own,
                of_many_that_ask_at_once_no_more_pass_than_the_rate;
            traces: what_the_models_traces_write_is_what_they_say;
        }
    };
}

/// The list behind [`conformance!`].
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($fresh:ident; $($group:ident: $($case:ident),+;)+) => {
        $(mod $group {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let (backend, _kept) = super::$fresh().await;
                    $crate::conformance::$group::$case(backend).await;
                }
            )+
        })+
    };
}

/// Makes one `#[tokio::test]` for each case about events.
///
/// Takes an async function that returns a fresh, empty
/// [`Arc<dyn EventBackend>`](crate::conformance::events::EventBackend) and whatever must live as long.
#[macro_export]
macro_rules! event_conformance {
    ($fresh:ident) => {
        $crate::event_conformance_cases! { $fresh;
            store: an_event_is_there_exactly_when_its_transaction_commits, an_event_comes_back_whole,
                what_is_claimed_keeps_its_key_and_no_other, a_claim_takes_of_a_key_what_comes_first,
                a_key_with_a_long_queue_hides_no_other, a_row_that_makes_no_sense_is_told_alone,
                whoever_lost_the_lease_settles_nothing, what_is_put_off_comes_after_its_wait,
                what_is_parked_holds_its_key_and_no_other, what_is_parked_is_listed_in_pages_and_goes_once,
                whoever_waits_for_events_is_woken;
            relay: two_relays_publish_each_event_once_and_in_order_per_key,
                a_broker_that_forgets_to_confirm_gets_some_twice_and_none_out_of_order,
                a_relay_killed_before_it_says_what_it_published_doubles_and_loses_nothing,
                an_event_that_commits_late_is_not_skipped, poison_is_parked_and_told_while_others_go_on,
                an_event_that_fails_while_others_are_confirmed_is_tried_again_and_then_parked,
                a_confirmation_that_never_comes_doubles_no_other, while_a_full_claim_waits_another_is_published,
                a_broker_that_is_down_is_waited_for_and_nothing_is_parked,
                a_relay_that_stops_gives_back_what_it_has_claimed;
            inbox: a_message_is_processed_once_a_consumer, of_deliveries_that_race_one_has_an_effect,
                what_is_past_its_retention_is_forgotten;
            watchdog: two_watchdogs_cancel_each_stuck_saga_once, a_saga_that_cannot_be_compensated_stops_no_other;
        }
    };
}

/// The list behind [`event_conformance!`].
#[doc(hidden)]
#[macro_export]
macro_rules! event_conformance_cases {
    ($fresh:ident; $($group:ident: $($case:ident),+;)+) => {
        $(mod $group {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let (backend, _kept) = super::$fresh().await;
                    $crate::conformance::events::$group::$case(backend).await;
                }
            )+
        })+
    };
}
