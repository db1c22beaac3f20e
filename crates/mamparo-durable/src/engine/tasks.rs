//! Which tasks there are, and how they start and end together.

use std::sync::Arc;

use mamparo_core::BoxError;
use tokio::sync::{Mutex, mpsc, watch};
use tower_service::Service;

use super::hands::{Begins, Hands};
use super::mover::{Mover, Watchful};
use super::pump::{Pump, PumpSettings};
use super::rounds::Rounds;
use super::sweeper::Sweeper;
use super::turns::{InTurn, Turns};
use super::{Engine, EngineError, RequestHandler, Running, Task};
use crate::backend::{QueueName, Request};
use crate::handler::{AnswerHandler, FireHandler};
use crate::machine::Answer;
use crate::supervise::{Make, Restarted, Together};

/// As many dependencies whose breaker is open wait to be moved; more are told again by their next fire.
const MAX_OPEN: usize = 64;

/// Starts an engine's tasks.
pub(super) fn start<S>(engine: Engine, sender: S) -> Running
where
    S: Service<Request, Response = Option<Answer>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + 'static,
{
    let (stop, stopped) = watch::channel(false);
    let starting = Starting {
        engine,
        stop: stopped,
    };
    let tasks = starting.all(sender).map(|(task, make)| {
        let supervised = starting.supervised(task, make);
        async move {
            let ended = supervised.run().await;
            ended.map_err(|why| EngineError::died(task, why))
        }
    });
    Running {
        tasks: Together::run(stop, tasks, EngineError::lost),
    }
}

struct Starting {
    engine: Engine,
    stop: watch::Receiver<bool>,
}

impl Starting {
    fn all<S>(&self, sender: S) -> [(Task, Make); 6]
    where
        S: Service<Request, Response = Option<Answer>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + 'static,
    {
        let runner = &self.engine.runner;
        let settings = &self.engine.settings;
        let (tell, open) = mpsc::channel(MAX_OPEN);
        let gate = Watchful {
            inner: Arc::clone(&settings.gatekeeper),
            tell,
        };
        let answers = self.pump(Task::Answers, settings.answers, |hands| {
            Begins::new(AnswerHandler::new(runner.clone()), hands)
        });
        let turns = ["fires", "requests"].map(|name| self.turns(name));
        let [fires, requests] = turns.clone();
        let handler = FireHandler::new(runner.clone(), gate);
        let fires = self.pump(Task::Fires, settings.fires, |hands| InTurn {
            inner: Begins::new(handler, hands),
            turns: fires,
        });
        let handler = RequestHandler::new(runner.clone(), sender);
        let requests = self.pump(Task::Requests, settings.requests, |hands| InTurn {
            inner: Begins::new(handler, hands),
            turns: requests,
        });
        let rounds = Rounds {
            reconciler: settings.reconciler.clone(),
            turns: turns.into_iter().flatten().collect(),
            every: settings.reconcile_every,
            health: Arc::clone(&self.engine.health),
            listener: Arc::clone(&runner.listener),
            stop: self.stop.clone(),
        };
        let mover = Mover {
            runner: runner.clone(),
            open: Arc::new(Mutex::new(open)),
            health: Arc::clone(&self.engine.health),
            stop: self.stop.clone(),
        };
        let sweeper = Sweeper {
            runner: runner.clone(),
            keep: settings.keep,
            health: Arc::clone(&self.engine.health),
            stop: self.stop.clone(),
        };
        [
            (
                Task::Answers,
                Box::new(move || Box::pin(answers.clone().run())),
            ),
            (Task::Fires, Box::new(move || Box::pin(fires.clone().run()))),
            (
                Task::Requests,
                Box::new(move || Box::pin(requests.clone().run())),
            ),
            (
                Task::Reconciler,
                Box::new(move || Box::pin(rounds.clone().run())),
            ),
            (Task::Mover, Box::new(move || Box::pin(mover.clone().run()))),
            (
                Task::Sweeper,
                Box::new(move || Box::pin(sweeper.clone().run())),
            ),
        ]
    }

    /// What bounds how often something passes, if the engine has such a bound; for all engines together where the backend can.
    fn turns(&self, name: &str) -> Option<Turns> {
        let rate = &self.engine.settings.rate;
        (!rate.is_off()).then(|| Turns::new(self.engine.backend().limits(), rate, name))
    }

    fn pump<S>(&self, task: Task, at_once: usize, service: impl FnOnce(Hands) -> S) -> Pump<S> {
        let hands = Hands::default();
        let settings = &self.engine.settings;
        let queue = match task {
            Task::Answers => QueueName::Answers,
            Task::Requests => QueueName::Requests,
            _ => QueueName::Fires,
        };
        Pump {
            task,
            queue: Arc::clone(self.engine.backend().queue(queue)),
            service: service(hands.clone()),
            hands,
            settings: PumpSettings {
                at_once,
                lease: settings.lease,
                look_again: settings.look_again,
                drain: settings.drain,
            },
            health: Arc::clone(&self.engine.health),
            listener: Arc::clone(&self.engine.runner.listener),
            stop: self.stop.clone(),
        }
    }

    fn supervised(&self, task: Task, make: Make) -> Restarted {
        let health = Arc::clone(&self.engine.health);
        Restarted {
            name: task.as_str().into(),
            make,
            max_restarts: self.engine.settings.max_restarts,
            works: Box::new(move |works| health.works(task, works)),
            listener: Arc::clone(&self.engine.runner.listener),
            stop: self.stop.clone(),
        }
    }
}
