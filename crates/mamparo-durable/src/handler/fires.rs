//! Handler B.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use mamparo_core::BoxError;
use tower_service::Service;

use super::{Gatekeeper, Handled, Runner};
use crate::backend::{BoxFuture, Delivery, Message};
use crate::machine::{Alert, AlertKind, Fire, Gate, Input, Label, Terms};

/// As many dependencies as are told apart when it is told that their breaker postpones.
const MAX_DEPENDENCIES: usize = 1_024;

/// Handles fires. The dependency's breaker is asked before each claim.
#[derive(Clone, Debug)]
pub struct FireHandler {
    runner: Runner,
    gatekeeper: Arc<dyn Gatekeeper>,
    /// Whose breaker postpones, so that it is told once and not for each fire.
    postponing: Arc<Mutex<HashSet<Option<Label>>>>,
}

impl FireHandler {
    /// Handles them with this runner, and asks this gatekeeper; `()` lets everything pass.
    #[must_use]
    pub fn new(runner: Runner, gatekeeper: impl Gatekeeper) -> Self {
        Self {
            runner,
            gatekeeper: Arc::new(gatekeeper),
            postponing: Arc::default(),
        }
    }

    fn gate(&self, terms: &Terms) -> Gate {
        let gate = self.gatekeeper.gate(terms);
        let mut postponing = self
            .postponing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if gate == Gate::Pass {
            postponing.remove(&terms.dependency);
        } else if postponing.len() < MAX_DEPENDENCIES && postponing.insert(terms.dependency.clone())
        {
            let alert = Alert::about(terms.id.clone(), AlertKind::BreakerPostponing);
            self.runner.listener().alert(&alert);
        }
        gate
    }
}

impl Service<Delivery> for FireHandler {
    type Response = Handled;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Handled, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let Delivery {
                message,
                since,
                receipt,
                ..
            } = delivery;
            let Message::Fire { id, attempt, seq } = message else {
                return Ok(Handled::MISPLACED);
            };
            let fire =
                |terms: &Terms| Input::Fire(Fire::new(attempt, seq).with_gate(this.gate(terms)));
            let handled = this.runner.handle(&id, fire, Some(receipt.clone())).await?;
            this.runner.heard(receipt.queue, handled, since);
            Ok(handled)
        })
    }
}
