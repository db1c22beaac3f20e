//! What the caller gets: the better of the results, marked where there is something to say.

use mamparo_core::{
    Answer, BoxError, Class, Classify, Ending, NotResent, RetryError, Verdict, What, clock,
};
use tower_service::Service;

use super::operation::Operation;
use crate::replay::Replay;
use crate::resend::not_sent;

/// What an attempt came to.
pub(super) struct Attempted<Res> {
    pub(super) outcome: Result<Res, BoxError>,
    pub(super) verdict: Verdict,
}

impl<Res> Attempted<Res> {
    /// A real answer is better than an error, and an error of the dependency better than a refusal of ours.
    pub(super) const fn rank(&self) -> u8 {
        match (&self.outcome, self.verdict.class()) {
            (_, Class::Ignored) => 0,
            (Err(_), _) => 1,
            (Ok(_), _) => 2,
        }
    }
}

impl<S, P, Req> Operation<S, P, Req>
where
    P: Replay<Req> + Classify<S::Response> + Answer<S::Response>,
    S: Service<P::Wire> + Clone,
    S::Error: Into<BoxError>,
{
    /// Hands a result to the caller, marked where there is something to say.
    #[cold]
    pub(super) fn finish(
        &mut self,
        attempted: Attempted<S::Response>,
        not_resent: Option<NotResent>,
    ) -> Result<S::Response, BoxError> {
        let Attempted { outcome, verdict } = attempted;
        self.pay_in(verdict);
        self.count(verdict);
        let not_resent = not_resent.filter(|_| verdict.kind().is_some());
        if let Some(reason) = not_resent {
            self.report(What::NotResent { verdict, reason });
        }
        self.report_end(verdict);
        let silent = match outcome {
            Ok(_) => self.scene.called <= 1,
            Err(_) => self.course.begun == 1,
        };
        if silent && not_resent.is_none() {
            return outcome;
        }
        self.mark(outcome, verdict, not_resent)
    }

    /// Counts what is counted where an operation was paid in: here, and not by another owner of resends around this one.
    fn count(&self, verdict: Verdict) {
        let budget = self.made.shared.policy.budget();
        match self.scene.called {
            _ if self._deposits.is_none() => {}
            0 => budget.note_unsent(),
            1 => {}
            _ if verdict.class() == Class::Success => budget.note_recovered(),
            _ => {}
        }
    }

    #[inline]
    pub(super) fn report_end(&self, verdict: Verdict) {
        if self.made.shared.observer.is_some() {
            let now = clock::now();
            let since = |started| now.saturating_duration_since(started);
            let elapsed = self.scene.scope.started().map(since).unwrap_or_default();
            self.report(What::OperationEnded {
                verdict,
                attempts: self.scene.called,
                elapsed,
            });
        }
    }

    #[cold]
    fn mark(
        &mut self,
        outcome: Result<S::Response, BoxError>,
        verdict: Verdict,
        not_resent: Option<NotResent>,
    ) -> Result<S::Response, BoxError> {
        let dependency = self.scene.scope.dependency();
        let in_doubt = self.race().in_doubt && verdict.kind().is_some();
        let ending = Ending::new(self.scene.called, not_resent, in_doubt);
        match outcome {
            Ok(mut answer) => {
                self.made.shared.protocol.mark(&mut answer, ending);
                Ok(answer)
            }
            Err(error) => {
                let last = self.race().last_response.take();
                Err(if verdict == Verdict::IGNORED {
                    not_sent(dependency, ending, last, error)
                } else {
                    RetryError::new(dependency, ending, last, error).into()
                })
            }
        }
    }
}
