//! An adaptive limit, but for the algorithms that are not tried out.

#[path = "../../../../crates/mamparo/src/bulkhead/adaptive/aimd.rs"]
mod aimd;
#[path = "../../../../crates/mamparo/src/bulkhead/adaptive/baseline.rs"]
mod baseline;
#[path = "../../../../crates/mamparo/src/bulkhead/adaptive/config.rs"]
mod config;
#[path = "../../../../crates/mamparo/src/bulkhead/adaptive/governor.rs"]
mod governor;
#[path = "../../../../crates/mamparo/src/bulkhead/adaptive/meter.rs"]
mod meter;
#[path = "../../../../crates/mamparo/src/bulkhead/adaptive/window.rs"]
mod window;

pub(super) use aimd::Aimd;
pub(super) use config::AdaptiveLimit;
pub(super) use governor::Governor;
pub(super) use window::{LimitAlgorithm, Window};
