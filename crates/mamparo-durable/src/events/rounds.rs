//! In which order claimed events are published, and what their outcomes mean. Pure.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use super::{ClaimedEvent, Event, Published, Settlement};
use crate::machine::Label;

/// The waits of an event that failed by itself: doubled each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Claimed events, in rounds: of each key one at a time, so that a later one leaves when the earlier was confirmed.
#[derive(Debug)]
pub(super) struct Rounds {
    left: VecDeque<Waiting>,
    under_way: Vec<Sent>,
    /// Keys of which one failed: the rest is given back.
    blocked: HashSet<String>,
    settled: Vec<(i64, Settlement)>,
    max_failures: u32,
}

#[derive(Debug)]
struct Waiting {
    number: i64,
    failures: u32,
    event: Event,
}

/// What is known of an event while its publisher has it.
#[derive(Debug)]
struct Sent {
    number: i64,
    failures: u32,
    key: Option<String>,
}

/// What came of a round.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) confirmed: u64,
    /// As many as the broker refused, or did not confirm.
    pub(super) unconfirmed: u64,
    /// What the broker said when it took none.
    pub(super) outage: Option<String>,
    /// Each with its reason.
    pub(super) parked: Vec<(i64, Label)>,
    /// After how long the first of those that failed is to be published again.
    pub(super) again_in: Option<Duration>,
}

impl Rounds {
    /// Rows that can't be read are parked at once.
    pub(super) fn new(claimed: Vec<ClaimedEvent>, max_failures: u32) -> (Self, Outcome) {
        let mut this = Self {
            left: VecDeque::with_capacity(claimed.len()),
            under_way: Vec::new(),
            blocked: HashSet::new(),
            settled: Vec::new(),
            max_failures,
        };
        let mut outcome = Outcome::default();
        for ClaimedEvent {
            number,
            key,
            failures,
            event,
        } in claimed
        {
            match event {
                Ok(event) => this.left.push_back(Waiting {
                    number,
                    failures,
                    event,
                }),
                Err(why) => {
                    this.park(number, why, &mut outcome);
                    this.blocked.extend(key);
                }
            }
        }
        (this, outcome)
    }

    /// Takes the next of each key; empty when all is done.
    pub(super) fn next(&mut self) -> Vec<Event> {
        let mut keys = HashSet::new();
        let mut round = Vec::new();
        let mut later = VecDeque::with_capacity(self.left.len());
        for waiting in self.left.drain(..) {
            let key = waiting.event.key().map(str::to_owned);
            match &key {
                Some(key) if self.blocked.contains(key) => {
                    self.settled.push((waiting.number, given_back()));
                }
                Some(key) if !keys.insert(key.clone()) => later.push_back(waiting),
                _ => {
                    self.under_way.push(Sent {
                        number: waiting.number,
                        failures: waiting.failures,
                        key,
                    });
                    round.push(waiting.event);
                }
            }
        }
        self.left = later;
        round
    }

    /// Says what became of each of the last round.
    pub(super) fn heard(&mut self, results: Vec<Published>) -> Outcome {
        let mut outcome = Outcome::default();
        let any = results
            .iter()
            .any(|result| matches!(result, Published::Confirmed));
        for (sent, result) in std::mem::take(&mut self.under_way).into_iter().zip(results) {
            match result {
                Published::Confirmed => {
                    outcome.confirmed += 1;
                    self.settled.push((sent.number, Settlement::Published));
                    continue;
                }
                Published::Refused(why) => self.park(sent.number, why.into(), &mut outcome),
                // While the broker takes others, the fault is the event's own.
                Published::NotNow(why) if any => self.fail(&sent, why, &mut outcome),
                Published::NotNow(why) => {
                    outcome.outage = Some(why);
                    self.settled.push((sent.number, given_back()));
                }
            }
            outcome.unconfirmed += 1;
            self.blocked.extend(sent.key);
        }
        outcome
    }

    /// Gives back whatever is left, and what is under way.
    pub(super) fn give_back(&mut self) {
        let left = self.left.drain(..).map(|waiting| waiting.number);
        let sent = self.under_way.drain(..).map(|sent| sent.number);
        let numbers: Vec<i64> = left.chain(sent).collect();
        self.settled
            .extend(numbers.into_iter().map(|number| (number, given_back())));
    }

    /// Takes what is to be stored.
    pub(super) fn settled(&mut self) -> Vec<(i64, Settlement)> {
        std::mem::take(&mut self.settled)
    }

    fn fail(&mut self, sent: &Sent, why: String, outcome: &mut Outcome) {
        if sent.failures + 1 >= self.max_failures {
            return self.park(sent.number, why.into(), outcome);
        }
        let wait = FIRST_WAIT.saturating_mul(1 << sent.failures.min(16));
        let wait = wait.min(LONGEST_WAIT);
        outcome.again_in = Some(outcome.again_in.map_or(wait, |again| again.min(wait)));
        let later = Settlement::Later { wait, failed: true };
        self.settled.push((sent.number, later));
    }

    fn park(&mut self, number: i64, why: Label, outcome: &mut Outcome) {
        outcome.parked.push((number, why.clone()));
        self.settled.push((number, Settlement::Parked(why)));
    }
}

const fn given_back() -> Settlement {
    Settlement::Later {
        wait: Duration::ZERO,
        failed: false,
    }
}
