//! Schedules in EventBridge Scheduler.
