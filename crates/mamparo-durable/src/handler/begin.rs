//! How a transaction begins.

use std::sync::Arc;

use super::Runner;
use super::runner::{commit, short};
use crate::backend::{BackendError, Begun, Committed, NewTransaction, Outbox};
use crate::fail_point::FailPoint;
use crate::machine::{Fire, Input, Label, State, Terms, TransactionId};

impl Runner {
    /// Makes the terms of a transaction that begins now, by the policy for its kind and customer.
    #[must_use]
    pub fn terms(
        &self,
        id: TransactionId,
        kind: impl Into<Label>,
        customer: Option<Label>,
    ) -> Terms {
        let kind = kind.into();
        let policy = self
            .policies
            .pick(kind.as_str(), customer.as_ref().map(Label::as_str), None);
        let terms = Terms::new(id, kind, policy, self.now());
        Terms { customer, ..terms }
    }

    /// Begins a transaction, and handles what is already known of it: `then`, or the sending of its original where it begins in
    /// SENDING ([`Record::sending`](crate::machine::Record::sending)). If one of
    /// that id exists, it is returned, and what is known is handled as a redelivery.
    ///
    /// # Errors
    ///
    /// The backend's. Whether it began may then be unknown: begin it again.
    pub async fn begin(
        &self,
        new: NewTransaction,
        then: Option<Input>,
    ) -> Result<Begun, BackendError> {
        let sends = new.record.progress.state == State::Sending;
        let then = then.or_else(|| sends.then(|| Input::Fire(Fire::new(1, 0))));
        let begun = self.begin_new(new, then.clone()).await?;
        // Whoever began it may have died before this.
        if let (Begun::Exists(there), Some(input)) = (&begun, then) {
            self.handle_loaded(there.clone(), input, None).await?;
        }
        Ok(begun)
    }

    /// Begins a transaction, and does nothing where one of that id exists: what is known may be of another request.
    pub(crate) async fn begin_new(
        &self,
        new: NewTransaction,
        then: Option<Input>,
    ) -> Result<Begun, BackendError> {
        if let Some(outbox) = self.backend.outbox() {
            return self.begin_at_once(&**outbox, new, then.as_ref()).await;
        }
        let record = new.record.clone();
        let begun = self.begin_only(new).await?;
        if let (Begun::New, Some(input)) = (&begun, then) {
            self.handle_loaded(record, input, None).await?;
        }
        Ok(begun)
    }

    async fn begin_only(&self, new: NewTransaction) -> Result<Begun, BackendError> {
        let (terms, event) = (Arc::clone(&new.record.terms), new.event());
        let begun = self.backend.store().begin(new).await?;
        FailPoint::Begun.reach();
        if begun == Begun::New {
            self.listener.transition(&terms, &event);
        }
        Ok(begun)
    }

    async fn begin_at_once(
        &self,
        outbox: &dyn Outbox,
        new: NewTransaction,
        then: Option<&Input>,
    ) -> Result<Begun, BackendError> {
        let (terms, event) = (Arc::clone(&new.record.terms), new.event());
        let mut plan = self.plan(&new.record, then);
        plan.step.begin = Some(new);
        match commit(outbox, plan.step.clone()).await? {
            Committed::Missed(Some(there)) => Ok(Begun::Exists(there)),
            Committed::Missed(None) => Err(short("commit")),
            Committed::Applied { conflict } => {
                self.listener.transition(&terms, &event);
                self.done(&terms, plan, conflict);
                Ok(Begun::New)
            }
        }
    }
}
