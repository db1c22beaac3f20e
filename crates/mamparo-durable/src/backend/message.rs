//! What travels in the three queues.

use bytes::Bytes;

use crate::machine::{Answer, Label, Outcome, Terms, TransactionId, idempotency_key};

/// Which queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the three queues of the defer plane"
)]
pub enum QueueName {
    /// What dependencies said; handler A's.
    Answers,
    /// What is due; handler B's.
    Fires,
    /// What is to be sent; the dependency's.
    Requests,
}

impl QueueName {
    /// Every queue.
    pub const ALL: [Self; 3] = [Self::Answers, Self::Fires, Self::Requests];

    /// Returns the name that is stored and shown: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Fires => "fires",
            Self::Requests => "requests",
        }
    }

    /// Reads such a name; `None` for any other text.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|queue| queue.as_str() == name)
    }
}

/// What one message says. It may be delivered twice, late, and after one that was published later.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "one message a queue")]
pub enum Message {
    /// An answer to an attempt.
    Answer {
        /// The transaction.
        id: TransactionId,
        /// What the dependency said.
        answer: Answer,
    },
    /// A schedule is due.
    Fire {
        /// The transaction.
        id: TransactionId,
        /// The attempt to make.
        attempt: u32,
        /// Which of its schedules this is.
        seq: u32,
    },
    /// A request is to be sent.
    Request(Request),
}

impl Message {
    /// Returns the queue that it belongs in.
    #[must_use]
    pub const fn queue(&self) -> QueueName {
        match self {
            Self::Answer { .. } => QueueName::Answers,
            Self::Fire { .. } => QueueName::Fires,
            Self::Request(_) => QueueName::Requests,
        }
    }

    /// Returns the transaction that it is about.
    #[must_use]
    pub const fn id(&self) -> &TransactionId {
        match self {
            Self::Answer { id, .. } | Self::Fire { id, .. } | Self::Request(Request { id, .. }) => {
                id
            }
        }
    }
}

/// A request to send. Its answer must carry its attempt and its seq.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The transaction.
    pub id: TransactionId,
    /// The attempt that it is.
    pub attempt: u32,
    /// Which of its schedules has fired; 0 for the original.
    pub seq: u32,
    /// What kind of transaction it is.
    pub kind: Label,
    /// What it goes to.
    pub dependency: Option<Label>,
    /// The trace context of the original, to link to.
    pub trace: Option<Label>,
    /// What was stored when the transaction began.
    pub body: Bytes,
}

impl Request {
    /// Makes the request of (attempt, seq).
    #[must_use]
    pub fn new(terms: &Terms, attempt: u32, seq: u32, body: Bytes) -> Self {
        Self {
            id: terms.id.clone(),
            attempt,
            seq,
            kind: terms.kind.clone(),
            dependency: terms.dependency.clone(),
            trace: terms.trace.clone(),
            body,
        }
    }

    /// Makes an answer to this send.
    #[must_use]
    pub const fn answer(&self, outcome: Outcome) -> Answer {
        Answer::new(self.attempt, self.seq, outcome)
    }

    /// Returns the idempotency key, the same for every send of this attempt.
    #[must_use]
    pub fn key(&self) -> String {
        idempotency_key(&self.id, self.attempt)
    }
}
