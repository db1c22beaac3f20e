//! Named places between two effects, at which a test has the process die.
//!
//! With the feature `fail_points`, the environment says where: `MAMPARO_FAIL_POINT="after write SENDING:3"` aborts the process when
//! that place is reached for the third time. Without the feature there is nothing of it: `reach` is empty.

use crate::backend::QueueName;
use crate::machine::State;

/// A place between two effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailPoint {
    /// Messages of a queue are taken, and none is handled.
    Taken(QueueName),
    /// A message is handled, and not settled.
    Settling(QueueName),
    /// A message is settled.
    Settled(QueueName),
    /// One transition is written, of a backend that does one thing after the other.
    Written(State),
    /// One effect is done, of a backend that does one thing after the other.
    Done(Doing),
    /// A whole step is decided, and not committed.
    Committing(State),
    /// A whole step is committed, and nobody was told.
    Committed(State),
    /// A transaction is stored, and what is known of it is not handled.
    Begun,
    /// A request is about to be sent.
    Sending,
    /// A request was answered, and nothing is stored of it.
    Answered,
    /// The reconciler found something, and did nothing yet.
    Found,
    /// What waits for an open breaker was moved.
    Moved,
}

/// What follows a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Doing {
    /// A schedule is made.
    Schedule,
    /// A schedule is deleted.
    Unschedule,
    /// A request is published.
    Send,
    /// A fire is published.
    Refire,
    /// A person is told.
    Alert,
}

impl FailPoint {
    /// Dies here, if that is what the environment says.
    #[cfg(not(feature = "fail_points"))]
    #[expect(
        clippy::unused_self,
        reason = "there is nothing of it without the feature"
    )]
    pub(crate) const fn reach(self) {}
}

#[cfg(feature = "fail_points")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{Doing, FailPoint};
    use crate::backend::QueueName;
    use crate::machine::State;

    const VARIABLE: &str = "MAMPARO_FAIL_POINT";

    struct Armed {
        name: String,
        hits: u64,
        reached: AtomicU64,
    }

    /// What the environment says, as `NAME:HITS`.
    fn armed() -> Option<&'static Armed> {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        let read = || {
            let said = std::env::var(VARIABLE).ok()?;
            let (name, hits) = said.rsplit_once(':')?;
            Some(Armed {
                name: name.to_owned(),
                hits: hits.parse().ok()?,
                reached: AtomicU64::new(0),
            })
        };
        ARMED.get_or_init(read).as_ref()
    }

    impl FailPoint {
        /// Every place.
        #[must_use]
        pub fn all() -> Vec<Self> {
            let mut all = vec![
                Self::Begun,
                Self::Sending,
                Self::Answered,
                Self::Found,
                Self::Moved,
            ];
            for queue in QueueName::ALL {
                let of = [Self::Taken, Self::Settling, Self::Settled];
                all.extend(of.map(|of| of(queue)));
            }
            for state in State::ALL {
                let of = [Self::Written, Self::Committing, Self::Committed];
                all.extend(of.map(|of| of(state)));
            }
            let doing = [
                Doing::Schedule,
                Doing::Unschedule,
                Doing::Send,
                Doing::Refire,
                Doing::Alert,
            ];
            all.extend(doing.map(Self::Done));
            all
        }

        /// Returns the name that the environment uses.
        #[must_use]
        pub fn name(self) -> String {
            match self {
                Self::Taken(queue) => format!("taken from {}", queue.as_str()),
                Self::Settling(queue) => format!("before settling of {}", queue.as_str()),
                Self::Settled(queue) => format!("after settling of {}", queue.as_str()),
                Self::Written(state) => format!("after write {state}"),
                Self::Done(doing) => format!("after {doing:?}").to_lowercase(),
                Self::Committing(state) => format!("before commit {state}"),
                Self::Committed(state) => format!("after commit {state}"),
                Self::Begun => "after begin".to_owned(),
                Self::Sending => "before send".to_owned(),
                Self::Answered => "after answer".to_owned(),
                Self::Found => "before mending".to_owned(),
                Self::Moved => "after move".to_owned(),
            }
        }

        /// Dies here, if that is what the environment says.
        pub(crate) fn reach(self) {
            let Some(armed) = armed() else { return };
            if armed.name == self.name()
                && armed.reached.fetch_add(1, Ordering::Relaxed) + 1 == armed.hits
            {
                std::process::abort();
            }
        }
    }
}
