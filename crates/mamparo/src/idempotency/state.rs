//! What becomes of a request with a key, or without one.

use std::time::Duration;

use super::key::Key;
use super::{Answer, Begun, Fingerprint, Kept, Record, RecordState, StoreError};

/// What becomes of a request whose key was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is run.
    Run {
        /// An earlier run's lease was over: it may have taken effect.
        again: bool,
    },
    /// It gets the answer that was given before.
    Replay(Box<Answer>),
    /// It is not run.
    Refuse(Refusal),
}

/// Why a request is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It has no key, and needs one.
    Missing,
    /// Its key can't be read.
    Malformed(&'static str),
    /// Nobody can tell whose key it is.
    NoPrincipal,
    /// Its body broke off.
    Unreadable,
    /// It is being run.
    InProgress,
    /// Its key was used for another request.
    Mismatch,
    /// It was run, and its answer was not kept.
    NotKept,
    /// It was begun, and nobody knows how it ended.
    Indeterminate,
    /// Somebody else took the key over while it was run.
    Lost,
    /// The store failed.
    StoreFailed,
}

/// Gives a request's key back, where it has one that can be read.
pub(super) fn admit(key: Result<Option<Key>, &'static str>) -> Result<Key, Refusal> {
    match key {
        Ok(Some(key)) => Ok(key),
        Ok(None) => Err(Refusal::Missing),
        Err(why) => Err(Refusal::Malformed(why)),
    }
}

/// Says what becomes of a request, by what is known of its key.
///
/// # Errors
///
/// What is known can't be read.
pub(super) fn decide(begun: Begun, fingerprint: &Fingerprint) -> Result<Decision, StoreError> {
    let record = match begun {
        Begun::Run { again } => return Ok(Decision::Run { again }),
        Begun::Found(record) => record,
    };
    // First: whoever asks for something else gets neither an answer nor a hint that there will be one.
    if record.fingerprint != *fingerprint {
        return Ok(Decision::Refuse(Refusal::Mismatch));
    }
    let answer = match record.state {
        RecordState::Started { lease_left } if lease_left == Duration::ZERO => {
            return Ok(Decision::Refuse(Refusal::Indeterminate));
        }
        RecordState::Started { .. } => return Ok(Decision::Refuse(Refusal::InProgress)),
        RecordState::Completed(sealed) => sealed.open()?,
    };
    Ok(match answer.body {
        Kept::Body(_) => Decision::Replay(Box::new(answer)),
        _ => Decision::Refuse(Refusal::NotKept),
    })
}

/// Tells whether the handler's own transaction stands in the store: then its answer, and no other, is the key's.
pub(super) fn committed(found: Option<&Record>, answer: &Answer) -> bool {
    matches!(
        found.map(|record| &record.state),
        Some(RecordState::Completed(stored)) if *stored == answer.seal()
    )
}
