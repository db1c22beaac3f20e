//! Vegas: the queue, as the latency tells it.

use super::window::{LimitAlgorithm, Window};

/// Infers from the latency how many calls queue at the dependency, and keeps that small: as TCP Vegas does.
///
/// Of `limit` calls, `limit · (1 − baseline / latency)` wait rather than being worked on. Less than 3·log₁₀(limit) of
/// them, and the limit grows; more than 6·log₁₀(limit), or failures for overload, and it shrinks.
///
/// After Brakmo, O'Malley, Peterson: *TCP Vegas* (SIGCOMM 1994), with the thresholds of Netflix's concurrency-limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vegas;

impl LimitAlgorithm for Vegas {
    fn next(&self, limit: f64, window: &Window) -> f64 {
        let step = limit.log10().max(1.0);
        let (alpha, beta) = (3.0 * step, 6.0 * step);
        if window.is_overloaded() {
            return limit - step;
        }
        let Some(slowdown) = window.slowdown() else {
            return limit;
        };
        let queue = (limit * (1.0 - 1.0 / slowdown)).ceil();
        if queue <= step {
            limit + beta
        } else if queue < alpha {
            limit + step
        } else if queue > beta {
            limit - step
        } else {
            limit
        }
    }
}
