//! The bounds of everything that a caller can make large.

use std::time::Duration;

/// As many bytes as a transaction's id may have.
pub const MAX_ID_BYTES: usize = 256;

/// As many bytes as are kept of a label: a kind, a customer, a dependency, a reason.
pub const MAX_LABEL_BYTES: usize = 512;

/// As many bytes as a request may have that is kept to be sent again: what the smallest broker takes.
pub const MAX_REQUEST_BYTES: usize = 256 * 1024;

/// As many attempts as can be asked for, the original included.
pub const MAX_ATTEMPTS: u32 = 1_000;

/// As many postponements as can be asked for.
pub const MAX_POSTPONEMENTS: u32 = 1_000_000;

/// No wait is longer.
pub const LONGEST_WAIT: Duration = Duration::from_secs(365 * 86_400);

/// As many bytes as an event's id, key, destination and routing key may each have: what AMQP takes.
pub const MAX_EVENT_NAME_BYTES: usize = 255;

/// As many bytes as an event's payload may have.
pub const MAX_EVENT_BYTES: usize = 256 * 1024;

/// As many headers as an event may have.
pub const MAX_EVENT_HEADERS: usize = 64;

/// As many bytes as an event's headers may have together, names included.
pub const MAX_EVENT_HEADER_BYTES: usize = 16 * 1024;
