//! Where keys are kept: the trait of all stores, and its words.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::{Fingerprint, KeyId, SealedAnswer, StoreError};

/// Keeps keys, what runs for them, and their answers.
///
/// A key is absent, *started* (somebody has its lease), *completed* (its answer is there), or past its retention, which is
/// absent again. Every verb is one atomic step. All times are durations from the store's own now, so that one clock counts,
/// however many servers there are. The module `conformance`, behind the feature of that name, has the tests that every store must pass.
///
/// A future may be dropped at any moment: the step is then done or not, and nothing else.
pub trait IdempotencyStore: fmt::Debug + Send + Sync + 'static {
    /// Whether its keys survive this process; the layer reports a store whose keys do not.
    const LASTS: bool = true;

    /// Starts a key, or says what is known of it.
    ///
    /// An absent key is started: [`Begun::Run`]. So is one whose lease is over, if [`Begin::on_expiry`] says so and the
    /// fingerprint is the same: it then belongs to the new fence, and the old one can do nothing any more. Any other key
    /// stays as it is: [`Begun::Found`].
    ///
    /// Called twice with the same fence, it says `Run` both times, so that whoever lost the answer can ask again.
    fn begin(&self, begin: &Begin) -> impl Future<Output = Result<Begun, StoreError>> + Send;

    /// Says what is known of a key, and changes nothing; none when it is absent.
    fn find(&self, id: KeyId) -> impl Future<Output = Result<Option<Record>, StoreError>> + Send;

    /// Sets the lease's end that long from now, also when it is over but nobody has taken the key; zero ends it at once.
    ///
    /// Called twice, the second call's end counts. A key is kept as much longer as its lease is.
    fn renew(
        &self,
        lease: Lease,
        term: Duration,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Stores the answer, to be kept that long from now, also when the lease is over but nobody has taken the key.
    ///
    /// Called twice by one fence, the first answer stays: [`Written::Before`].
    fn complete(
        &self,
        lease: Lease,
        answer: &SealedAnswer,
        retention: Duration,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Forgets a key for which nothing was done.
    ///
    /// A completed key stays ([`Written::Before`] to its own fence); called twice, the second finds nothing: [`Written::Lost`].
    fn release(&self, lease: Lease) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Removes at most `limit` keys that are past their retention; returns how many there were.
    ///
    /// Called twice, the second removes the next ones, and returns 0 when none is left. A store that forgets by itself
    /// always returns 0.
    fn sweep(&self, limit: usize) -> impl Future<Output = Result<usize, StoreError>> + Send;
}

/// A store that others hold too.
impl<St: IdempotencyStore> IdempotencyStore for Arc<St> {
    const LASTS: bool = St::LASTS;

    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        St::begin(self, begin).await
    }

    async fn find(&self, id: KeyId) -> Result<Option<Record>, StoreError> {
        St::find(self, id).await
    }

    async fn renew(&self, lease: Lease, term: Duration) -> Result<Written, StoreError> {
        St::renew(self, lease, term).await
    }

    async fn complete(
        &self,
        lease: Lease,
        answer: &SealedAnswer,
        retention: Duration,
    ) -> Result<Written, StoreError> {
        St::complete(self, lease, answer, retention).await
    }

    async fn release(&self, lease: Lease) -> Result<Written, StoreError> {
        St::release(self, lease).await
    }

    async fn sweep(&self, limit: usize) -> Result<usize, StoreError> {
        St::sweep(self, limit).await
    }
}

/// Who may run a key: a new one for each request, so that two of them are never taken for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence([u8; 16]);

impl Fence {
    /// Makes one that was never there before.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Uuid::new_v4().into_bytes())
    }

    /// Makes one from bytes that a store kept.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes, for a store to keep.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The right to run a key, as long as nobody has taken it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The key.
    pub id: KeyId,
    /// Who holds it: a store does what a lease asks for only while this fence is the key's.
    pub fence: Fence,
}

impl Lease {
    /// Names a key and who holds it.
    #[must_use]
    pub const fn new(id: KeyId, fence: Fence) -> Self {
        Self { id, fence }
    }
}

/// What to do for a key whose lease is over, while nobody knows whether its request took effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnExpiry {
    /// Run nothing, and say that it is not known: for effects that must not happen twice.
    #[default]
    Indeterminate,
    /// Run again: for effects that are in one transaction with the key, or that may happen twice.
    RunAgain,
}

/// A request to start a key.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// The key.
    pub id: KeyId,
    /// Who asks.
    pub fence: Fence,
    /// What is asked for.
    pub fingerprint: Fingerprint,
    /// For how long the lease is.
    pub term: Duration,
    /// For how long a key is kept whose lease is over, from that moment on.
    pub retention: Duration,
    /// What to do when an earlier lease is over.
    pub on_expiry: OnExpiry,
}

impl Begin {
    /// Asks for a key, with a fence of its own.
    #[must_use]
    pub fn new(id: KeyId, fingerprint: Fingerprint, term: Duration, retention: Duration) -> Self {
        Self {
            id,
            fence: Fence::fresh(),
            fingerprint,
            term,
            retention,
            on_expiry: OnExpiry::default(),
        }
    }

    /// Sets what to do when an earlier lease is over.
    #[must_use]
    pub const fn on_expiry(mut self, on_expiry: OnExpiry) -> Self {
        self.on_expiry = on_expiry;
        self
    }

    /// Returns the lease that it asks for.
    #[must_use]
    pub const fn lease(&self) -> Lease {
        Lease::new(self.id, self.fence)
    }

    /// Says what is to be done where a store has found that row; one that is past its retention counts as none.
    ///
    /// The rule of [`IdempotencyStore::begin`], pure, for a store that can read and write in one step.
    #[must_use]
    pub fn over(&self, row: Option<Row>) -> Step {
        let Some(row) = row else {
            return Step::Start { again: false };
        };
        let started = row.answer.is_none();
        if started && row.fence == self.fence {
            return Step::Held;
        }
        let may_take = started
            && row.lease_left.is_zero()
            && self.on_expiry == OnExpiry::RunAgain
            && row.fingerprint == self.fingerprint;
        if may_take {
            return Step::Start { again: true };
        }
        Step::Found(row.into())
    }
}

/// What a store keeps of a key, as of its own now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Who started it last.
    pub fence: Fence,
    /// What was asked for.
    pub fingerprint: Fingerprint,
    /// How long the lease lasts; zero when it is over.
    pub lease_left: Duration,
    /// The answer, once there is one.
    pub answer: Option<SealedAnswer>,
}

impl From<Row> for Record {
    fn from(row: Row) -> Self {
        Self {
            fingerprint: row.fingerprint,
            state: match row.answer {
                Some(answer) => RecordState::Completed(answer),
                None => RecordState::Started {
                    lease_left: row.lease_left,
                },
            },
        }
    }
}

/// What is to be done with a row, for [`Begin::over`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Write the row anew, started by this fence.
    Start {
        /// Whether an earlier lease was over.
        again: bool,
    },
    /// Nothing: this fence has it.
    Held,
    /// Nothing: somebody else has it, or it is completed.
    Found(Record),
}

/// What became of a request to start a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Begun {
    /// The key is started, and this request has its lease.
    Run {
        /// Whether an earlier lease was over: what was begun under it may have taken effect.
        again: bool,
    },
    /// Somebody else has it, or it is completed.
    Found(Record),
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What was asked for when it was started.
    pub fingerprint: Fingerprint,
    /// How far it has come.
    pub state: RecordState,
}

impl Record {
    /// Says what was asked for, and how far it has come.
    #[must_use]
    pub const fn new(fingerprint: Fingerprint, state: RecordState) -> Self {
        Self { fingerprint, state }
    }
}

/// How far a key has come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordState {
    /// It was started and not completed.
    Started {
        /// How long its lease lasts; zero when it is over.
        lease_left: Duration,
    },
    /// Its answer is there.
    Completed(SealedAnswer),
}

/// What became of a step that only the holder of a lease may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Written {
    /// It is done.
    Done,
    /// The holder itself had completed the key before; its answer stays.
    Before,
    /// The key is not the holder's any more, or gone: nothing is changed.
    Lost,
}
