//! What a stack does, in words and in figures.

use std::fmt;
use std::time::Duration;

use super::resends::Owner;
use super::{FallbackSlot, Protocol, Stack};
use crate::bulkhead::BulkheadPolicy;
use crate::rate_limit::{RateLimitLayer, RateLimitPolicy};

/// The most that one operation may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorstCase {
    /// How often it is sent, the first time included.
    pub attempts: u32,
    /// How long its caller waits for the answer's head; none if nothing bounds that.
    ///
    /// Without a deadline, a server's own wait, such as a `Retry-After`, comes on top.
    pub time: Option<Duration>,
}

impl<O, A, F, P: Protocol> Stack<O, A, F, P> {
    /// Returns the most that one operation may cost.
    ///
    /// ```
    /// use mamparo::attempt_timeout::AttemptPolicy;
    /// use mamparo::stack::Stack;
    /// use std::time::Duration;
    ///
    /// // 100 ms for a place, three attempts of 2 s, and waits of 100 and 200 ms between them.
    /// let worst = Stack::http("catalog").worst_case();
    /// assert_eq!((worst.attempts, worst.time), (3, Some(Duration::from_millis(6_400))));
    ///
    /// // The deadline, where the attempts would take longer.
    /// let slow = AttemptPolicy::builder().timeout(Duration::from_secs(5)).build()?;
    /// let worst = Stack::http("catalog").attempt(slow).worst_case();
    /// assert_eq!(worst.time, Some(Duration::from_secs(10)));
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    #[must_use]
    pub fn worst_case(&self) -> WorstCase {
        let attempts = self.owner.max_attempts();
        let time = match (self.unhurried(attempts), self.deadline.limit()) {
            (Some(unhurried), Some(limit)) => Some(unhurried.min(limit)),
            (unhurried, limit) => unhurried.or(limit),
        };
        WorstCase { attempts, time }
    }

    /// How long an operation takes without a deadline, when everything takes as long as it may.
    fn unhurried(&self, attempts: u32) -> Option<Duration> {
        let bulkhead = self.bulkhead.policy();
        let in_line = match bulkhead.is_off() || bulkhead.max_waiting() == 0 {
            true => Duration::ZERO,
            false => bulkhead.max_wait()?,
        };
        let rate_limit = self.rate_limit.as_ref().map(RateLimitLayer::policy);
        let turn = match rate_limit {
            Some(policy) if !policy.is_off() => policy.max_wait(),
            _ => Duration::ZERO,
        };
        // A hedge begins the next attempt no later than when the one before has ended.
        let attempt = turn.saturating_add(self.attempt.timeout()?);
        let between = self.owner.worst_case_wait();
        let sending = attempt.saturating_mul(attempts);
        Some(sending.saturating_add(between).saturating_add(in_line))
    }
}

/// A line for each layer, outermost first, and one for the worst case.
impl<O, A, F: FallbackSlot<P>, P: Protocol> fmt::Display for Stack<O, A, F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let off = |is_on: bool| if is_on { "on" } else { "off" };
        writeln!(f, "{}, outermost first:", self.dependency)?;
        match self.deadline.limit() {
            Some(limit) => writeln!(f, "  deadline: {limit:?}, or what the caller has left")?,
            None => writeln!(f, "  deadline: what the caller has left, if anything")?,
        }
        writeln!(f, "  fallback: {}", off(F::TAKEN))?;
        let sheds = self.load_shed_layer().is_some();
        writeln!(f, "  load shedding: {}", off(sheds))?;
        match self.key.header() {
            Some(name) => writeln!(f, "  idempotency key: {name}")?,
            None => writeln!(f, "  idempotency key: off")?,
        }
        writeln!(f, "  bulkhead: {}", Places(self.bulkhead.policy()))?;
        match &self.operation_breaker {
            Some(layer) => writeln!(f, "  breaker, observing operations: {}", layer.policy())?,
            None => writeln!(f, "  breaker, observing operations: off")?,
        }
        let attempts = self.owner.max_attempts();
        match &self.owner.usual {
            Owner::Retry(_) => writeln!(f, "  retry: up to {attempts} attempts, one by one")?,
            Owner::Hedge(_) => writeln!(f, "  hedge: up to {attempts} attempts, side by side")?,
        }
        if !self.peek.is_off() {
            writeln!(f, "  peek: failures in trailers before any data")?;
        }
        let inner = self.breaker.policy();
        writeln!(f, "  breaker, observing attempts: {inner}")?;
        match &self.rate_limit {
            Some(layer) => writeln!(f, "  rate limit: {}", Rate(layer.policy()))?,
            None => writeln!(f, "  rate limit: off")?,
        }
        match self.attempt.timeout() {
            Some(timeout) => writeln!(f, "  attempt timeout: {timeout:?}")?,
            None => writeln!(f, "  attempt timeout: off")?,
        }
        write!(f, "at worst {}", self.worst_case())
    }
}

impl fmt::Display for WorstCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        write!(f, "{} attempt{plural}, ", self.attempts)?;
        match self.time {
            Some(time) => write!(f, "and {time:?} until an answer or an error"),
            None => f.write_str("for as long as the dependency takes"),
        }
    }
}

struct Places<'a>(&'a BulkheadPolicy);

impl fmt::Display for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_off() {
            return f.write_str("off");
        }
        let (limit, waiting) = (self.0.limit(), self.0.max_waiting());
        write!(f, "{limit} at once, {waiting} waiting")?;
        match self.0.max_wait() {
            Some(wait) => write!(f, " for up to {wait:?}"),
            None => f.write_str(" until their deadline"),
        }
    }
}

struct Rate<'a>(&'a RateLimitPolicy);

impl fmt::Display for Rate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_off() {
            return f.write_str("off");
        }
        let (count, period) = self.0.rate();
        let burst = self.0.burst();
        write!(f, "{count} per {period:?}, {burst} at once, ")?;
        match self.0.max_wait() {
            Duration::ZERO => f.write_str("the others are rejected"),
            wait => write!(f, "the others wait for up to {wait:?}"),
        }
    }
}
