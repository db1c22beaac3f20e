//! Ours: the layers alone, and as stacks.

mod plane;
mod policy;
mod protecting;
mod whole;

pub(crate) use plane::{ATTEMPT, OPERATION, attempt_timeout, deadline, http, retry, stack};
pub(crate) use policy::{by_hand, from_a_file};
pub(crate) use protecting::{
    breaker, breaker_counting, breaker_open, breaker_timing, breakers_by_key, bulkhead,
    bulkhead_full, fallback, hedge, load_shed, overloaded, rate_limit, rate_limit_used_up,
};
pub(crate) use whole::{whole, whole_full, whole_http, whole_open};
