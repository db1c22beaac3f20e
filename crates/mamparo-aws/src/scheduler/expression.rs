//! An instant as the service writes it.

use std::time::Duration;

use mamparo_durable::machine::Utc;

/// What `at(…)` can't say: it has whole seconds.
const REST: Duration = Duration::from_millis(999);

/// As many characters as `yyyy-mm-ddThh:mm:ss` has.
const TO_THE_SECOND: usize = 19;

/// Writes the first whole second that is not before an instant; of the last second of the year 9999, that second.
pub(super) fn at(instant: Utc) -> String {
    let text = instant.plus(REST).to_string();
    format!("at({})", text.get(..TO_THE_SECOND).unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn instant(text: &str) -> Utc {
        text.parse().unwrap()
    }

    #[test]
    fn a_whole_second_stays_and_any_other_is_rounded_up() {
        for (from, to) in [
            ("2030-01-31T08:00:00Z", "at(2030-01-31T08:00:00)"),
            ("2030-01-31T08:00:00.001Z", "at(2030-01-31T08:00:01)"),
            ("2029-12-31T23:59:59.999Z", "at(2030-01-01T00:00:00)"),
        ] {
            assert_eq!(at(instant(from)), to);
        }
        assert_eq!(at(Utc::MAX), "at(9999-12-31T23:59:59)");
    }

    proptest! {
        #[test]
        fn it_is_never_early_and_less_than_a_second_late(millis in 0..253_402_300_799_000_i64) {
            let due = Utc::from_millis(millis).unwrap();
            let text = at(due);
            let said = instant(&format!("{}Z", &text[3..22]));
            prop_assert!(said >= due && said.since(due) < Duration::from_secs(1));
        }
    }
}
