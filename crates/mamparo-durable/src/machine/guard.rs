//! The rules that keep the machine right, by name, so that a test can take each of them away.

/// A rule without which something is lost, doubled or never ends.
///
/// Nothing can switch one off outside of this crate's own tests; there the model checker removes each in turn and must find
/// the failure that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Guard {
    /// A write that misses is decided again from what is stored; else an answer is acknowledged without effect.
    RereadAfterMiss,
    /// The attempt moves when it is claimed; else a fast answer is taken for a late one.
    AdvanceOnClaim,
    /// An answer to another attempt than the current one is late; else an old refusal spends a new attempt.
    LateAnswersAreDropped,
    /// An answer counts while its request is still being confirmed; else a fast one is lost.
    AnswersCountInSending,
    /// A success counts in a technical wait; else the slow answer is lost and the request sent again.
    SlowSuccessCounts,
    /// A refusal counts in a technical wait; else that attempt is sent again for nothing, and may never end.
    SlowRefusalCounts,
    /// The last refusal ends only what awaits an answer; else it overwrites what a person resolved.
    RefusalNamesItsStates,
    /// A refusal of the last attempt ends the transaction; else there is one attempt too many.
    AttemptsAreCapped,
    /// A technical failure counts only for the send that it belongs to; else its redelivery counts twice.
    TechnicalNeedsSeq,
    /// A technical failure sends the same attempt again; else it spends one that nobody refused.
    TechnicalSpendsNoAttempt,
    /// Postponements are capped; else a dependency that is down keeps a transaction for ever.
    PostponementsAreCapped,
    /// A redelivered answer that finds SCHEDULING makes the schedule; else it is never made.
    AnswersResumeScheduling,
    /// The instant that was stored is used; else a redelivery makes another schedule of the same name.
    StoredInstant,
    /// A fire counts only for the schedule that is current; else an old one beats the new instant.
    FireNeedsSeq,
    /// A fire counts before its schedule is confirmed; else an early one is lost.
    FireCountsInScheduling,
    /// A fire that finds its attempt claimed sends it; else a crash before the send is never mended.
    FireResumesSending,
    /// An obsolete fire makes sure that the current schedule exists; else who moved it may have died before making it.
    ObsoleteFireEnsures,
    /// An attempt is postponed before its claim only; else what the dependency may have done is called postponed for too long.
    PostponeBeforeClaim,
    /// The new schedule is made before the old one is deleted; else a crash in between leaves none.
    CreateBeforeDelete,
    /// The redelivery of what led to an end tells of it again; else nobody hears of it if whoever wrote it died.
    EndsAreToldAgain,
    /// Nothing is cancelled in a technical wait; else it is called failed although the dependency did it.
    NoCancelInTechnicalWait,
    /// The reconciler sends again what was never answered; else a lost answer is awaited for ever.
    ReconcilerResends,
    /// The reconciler gives up at last; else a silent dependency keeps a transaction for ever.
    ReconcilerGivesUp,
    /// The reconciler fires what is due, and nothing before; else a wait is cut short.
    ReconcilerWaits,
}
