//! Handler A.

use std::task::{Context, Poll};

use mamparo_core::BoxError;
use tower_service::Service;

use super::{Handled, Runner};
use crate::backend::{BoxFuture, Delivery, Message};
use crate::machine::Input;

/// Handles answers.
#[derive(Clone, Debug)]
pub struct AnswerHandler {
    runner: Runner,
}

impl AnswerHandler {
    /// Handles them with this runner.
    #[must_use]
    pub const fn new(runner: Runner) -> Self {
        Self { runner }
    }
}

impl Service<Delivery> for AnswerHandler {
    type Response = Handled;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Handled, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let runner = self.runner.clone();
        Box::pin(async move {
            let Delivery {
                message,
                since,
                receipt,
                ..
            } = delivery;
            let Message::Answer { id, answer } = message else {
                return Ok(Handled::MISPLACED);
            };
            let handled = runner
                .handle(&id, |_| Input::Answer(answer), Some(receipt.clone()))
                .await?;
            runner.heard(receipt.queue, handled, since);
            Ok(handled)
        })
    }
}
