//! What a deferral costs, on public prices.
//!
//! Counted for one deferral through the outbox: an answer means "not now", its schedule is made, its fire comes, its request is sent
//! again and is answered. The record and each row of history have at most 1 KB, the request too, and messages travel ten at a time.

use serde::Serialize;

/// Of when the prices are.
pub const PRICED: &str = "2026-03";

/// Where they hold.
pub const PRICED_IN: &str = "us-east-1";

/// What one thing costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Price {
    /// Whose it is.
    pub service: &'static str,
    /// What is counted.
    pub what: &'static str,
    /// As many of them makes one deferral.
    pub units: f64,
    /// Dollars for a million of them.
    pub per_million: f64,
}

/// What a deferral is billed for. Free tiers are left out.
pub const PRICES: [Price; 4] = [
    Price {
        service: "DynamoDB",
        what: "write request units",
        units: WRITE_UNITS,
        per_million: 0.625,
    },
    Price {
        service: "DynamoDB",
        what: "read request units",
        units: READ_UNITS,
        per_million: 0.125,
    },
    Price {
        service: "SQS",
        what: "requests",
        units: REQUESTS,
        per_million: 0.40,
    },
    Price {
        service: "EventBridge Scheduler",
        what: "invocations",
        units: 1.0,
        per_million: 1.00,
    },
];

/// A transactional write of up to 1 KB takes two units; an item whose place in the index changes takes two there.
///
/// | step | record | history | outbox | index |
/// |---|---|---|---|---|
/// | refused: SCHEDULING, SCHEDULED | 2 | 2 × 2 | 2 put, 1 deleted | 2 |
/// | fired: SENDING, IN_FLIGHT | 2 | 2 × 2 | 2 put, 1 deleted | 2 |
pub(super) const WRITE_UNITS: f64 = 22.0;

/// Each of the two steps reads the record as it is now; the second reads it again with the request that it sends.
pub(super) const READ_UNITS: f64 = 4.0;

/// Answer, fire and request are each sent, taken and removed, ten of them in one request; but the scheduler sends each fire alone.
pub(super) const REQUESTS: f64 = 1.8;

impl Price {
    /// Returns the dollars for a million deferrals.
    #[must_use]
    pub fn of_a_million(&self) -> f64 {
        self.units * self.per_million
    }
}

/// Returns the dollars for a million deferrals, all in all.
#[must_use]
pub fn million() -> f64 {
    PRICES.iter().map(Price::of_a_million).sum()
}
