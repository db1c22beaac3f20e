//! When there may be something to take.

use mamparo_durable::backend::QueueName;

/// For each queue, the earliest instant (milliseconds) at which something that was written is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready([i64; 3]);

/// Nothing was written.
const NEVER: i64 = i64::MAX;

impl Default for Ready {
    fn default() -> Self {
        Self([NEVER; 3])
    }
}

impl Ready {
    /// Something is ready in that queue then.
    pub(crate) fn at(&mut self, queue: QueueName, millis: i64) {
        let earliest = &mut self.0[queue as usize];
        *earliest = millis.min(*earliest);
    }

    /// What is ready before that instant, by queue.
    pub(crate) fn before(self, millis: i64) -> impl Iterator<Item = (QueueName, i64)> {
        let all = QueueName::ALL
            .into_iter()
            .map(move |queue| (queue, self.0[queue as usize]));
        all.filter(move |(_, at)| *at < millis)
    }

    /// What either of them says.
    pub(crate) fn and(mut self, other: Self) -> Self {
        for (queue, at) in other.before(NEVER) {
            self.at(queue, at);
        }
        self
    }

    pub(crate) fn is_never(self) -> bool {
        self == Self::default()
    }

    /// What is notified: `sender queue=millis …`.
    pub(crate) fn to_text(self, sender: u64) -> String {
        let mut text = format!("{sender:x}");
        for (queue, at) in self.before(NEVER) {
            text.push_str(&format!(" {}={at}", queue.as_str()));
        }
        text
    }

    /// Reads what was notified, and by whom; what makes no sense says that anything may be ready.
    pub(crate) fn from_text(text: &str) -> (u64, Self) {
        let anything = (0, Self([0; 3]));
        let mut words = text.split(' ');
        let Some(sender) = words
            .next()
            .and_then(|word| u64::from_str_radix(word, 16).ok())
        else {
            return anything;
        };
        let mut ready = Self::default();
        for word in words {
            let read = word.split_once('=');
            let Some((queue, at)) =
                read.and_then(|(queue, at)| Some((QueueName::parse(queue)?, at.parse().ok()?)))
            else {
                return anything;
            };
            ready.at(queue, at);
        }
        (sender, ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_notified_is_read_back_and_nonsense_wakes_all() {
        let mut ready = Ready::default();
        assert!(ready.is_never());
        ready.at(QueueName::Fires, 7);
        ready.at(QueueName::Fires, 9);
        ready.at(QueueName::Answers, 8);
        let text = ready.to_text(0xabc);
        assert_eq!(text, "abc answers=8 fires=7");
        assert_eq!(Ready::from_text(&text), (0xabc, ready));
        let before: Vec<_> = ready.before(8).collect();
        assert_eq!(before, [(QueueName::Fires, 7)]);
        for nonsense in ["", "x", "1 fires", "1 fires=x", "1 others=1"] {
            assert_eq!(
                Ready::from_text(nonsense).1.before(1).count(),
                3,
                "{nonsense}"
            );
        }
    }
}
