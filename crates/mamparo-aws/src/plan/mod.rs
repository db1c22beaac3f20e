//! Everything that has to be there, as data: described once, and told, made and checked from that.
//!
//! | file | what it is |
//! |---|---|
//! | `resource` | what a table, a queue, a role and an alarm are |
//! | `contents` | [`Plan`]: which of them there are |
//! | `alarms` | what is watched, and what to do when it fires |
//! | `place`, `policies` | their ARNs, and who may do what with them |
//! | `cloudformation`, `terraform`, `json` | the plan, told |
//! | `inspect`, `difference` | what is there, against what should be: [`check`] |
//! | `make` | creates what is missing: [`apply`] |
//! | `capacity`, `cost` | arithmetic: quotas and dollars |
//!
//! ```
//! use mamparo_aws::plan::Plan;
//!
//! let plan = Plan::new("shop")?;
//! assert!(plan.queues().iter().any(|queue| queue.name == "shop-fires"));
//! let template = plan.cloudformation();
//! assert!(template.contains("AWS::Scheduler::ScheduleGroup"));
//! # Ok::<(), mamparo_core::InvalidSetting>(())
//! ```

mod alarms;
mod capacity;
mod cloudformation;
mod contents;
mod cost;
mod difference;
mod inspect;
mod json;
mod make;
mod place;
mod policies;
mod resource;
mod terraform;
#[cfg(test)]
mod tests;

pub use capacity::{Load, Need};
pub use contents::Plan;
pub use cost::{PRICED, PRICED_IN, PRICES, Price, million};
pub use difference::{Finding, State};
pub use inspect::check;
pub use make::apply;
pub use place::Place;
pub use resource::{Alarm, Attribute, DeadLetters, Group, Index, Key, Kind, Queue, Role, Table};
