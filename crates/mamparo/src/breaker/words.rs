//! A policy, in words.

use std::fmt;

use super::config::Rules;
use super::{BreakerPolicy, Window};

/// Says what opens the breaker.
impl fmt::Display for BreakerPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.off {
            return f.write_str("off");
        }
        let Rules {
            consecutive,
            failures,
            failure_rate,
            slow_rate,
            slow_threshold,
            minimum,
        } = self.rules;
        let within = match self.window {
            Some(Window::Time(length)) => format!(" in the last {length:?}"),
            Some(Window::Calls(count)) => format!(" of the last {count}"),
            None => String::new(),
        };
        let share = |rate: f64, what: &str| {
            let percent = (rate * 1_000.0).round() / 10.0;
            format!("{percent} % {what} of at least {minimum} calls{within}")
        };
        let slow = slow_rate.zip(slow_threshold);
        let rules = [
            consecutive.map(|failures| format!("{failures} failures in a row")),
            failures.map(|failures| format!("{failures} failures{within}")),
            failure_rate.map(|rate| share(rate, "failures")),
            slow.map(|(rate, least)| share(rate, &format!("slower than {least:?}"))),
        ];
        let rules: Vec<String> = rules.into_iter().flatten().collect();
        let opens = if self.shadow { "would open" } else { "opens" };
        write!(f, "{opens} at {}", rules.join(", or at "))
    }
}
