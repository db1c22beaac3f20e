//! The plan as JSON, for programs.

use serde_json::{Value, json};

use super::contents::Plan;
use super::place::Place;

impl Plan {
    /// Returns everything as JSON, with the ARNs of a place.
    #[must_use]
    pub fn json(&self, place: &Place) -> Value {
        let guards = self.queues().into_iter().filter(|queue| queue.guarded);
        let guards = guards.map(|queue| {
            let policy = self.guard(place, &queue.name);
            json!({ "queue": queue.name, "policy": policy })
        });
        json!({
            "prefix": self.prefix(),
            "kms_key": self.kms_key(),
            "tables": self.tables(),
            "queues": self.queues(),
            "queue_policies": guards.collect::<Vec<_>>(),
            "schedule_group": self.group(),
            "roles": self.roles(place),
            "setup_policy": self.setup_policy(place),
            "alarms": self.alarms(),
        })
    }
}
