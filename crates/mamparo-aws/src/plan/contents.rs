//! Which resources there are.

use mamparo_core::InvalidSetting;
use mamparo_durable::backend::QueueName;
use serde_json::{Value, json};

use super::place::Place;
use super::resource::{Alarm, Attribute, DeadLetters, Group, Index, Key, Queue, Role, Table};
use super::{alarms, policies};
use crate::connection::Aws;
use crate::names::Names;
use crate::queue::letters;
use crate::store::schema;

/// As many bytes as SQS lets a message have. A request travels in base64, with its terms.
pub(super) const LARGEST: u32 = 1024 * 1024;

/// As long as SQS keeps a message: 14 days. Of what a net has caught, it counts from when it was first sent.
const KEPT_DEAD: u32 = 14 * 86_400;

/// A message that nobody takes for so long is not waited for any more: what it was to do, the reconciler does again.
const KEPT: u32 = 7 * 86_400;

/// As long as a lease is by default; the engine asks for its own with each take.
const VISIBILITY: u32 = 30;

/// As long as SQS lets a take wait.
const WAIT: u32 = 20;

/// Delivered more often than this, a message is among the dead letters though nobody could say so: a net far under the
/// engine's own limit, which knows why, and does not count what a shutdown gave back.
const MAX_RECEIVE_COUNT: u32 = 1_000;

/// What the engine's service is by default: tasks of ECS.
pub(super) const ENGINE_SERVICE: &str = "ecs-tasks.amazonaws.com";

/// Everything that has to be there for the defer plane: tables, queues, a group of schedules, roles and alarms.
///
/// The names begin with its prefix, so that several of them live in one account and region.
#[derive(Clone, Debug)]
pub struct Plan {
    names: Names,
    kms_key: Option<String>,
}

impl Plan {
    /// Makes a plan of everything whose names begin with `prefix`.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when no table or queue can have such a name.
    pub fn new(prefix: &str) -> Result<Self, InvalidSetting> {
        Ok(Self::named(Names::new(prefix)?))
    }

    /// Makes the plan of everything that these clients work with.
    #[must_use]
    pub fn of(aws: &Aws) -> Self {
        Self::named(aws.names().clone())
    }

    const fn named(names: Names) -> Self {
        let kms_key = None;
        Self { names, kms_key }
    }

    /// Encrypts tables and queues with this key of KMS instead of the services' own, and lets the roles use it.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when it is no ARN of a key: an alias can't stand in a policy.
    pub fn encrypted_with(mut self, key: impl Into<String>) -> Result<Self, InvalidSetting> {
        let key = key.into();
        let is_key = key.starts_with("arn:") && key.contains(":kms:") && key.contains(":key/");
        if !is_key {
            let reason =
                "must be the ARN of a key, such as arn:aws:kms:eu-west-1:123456789012:key/ID";
            return Err(InvalidSetting::new("kms_key", key, reason));
        }
        self.kms_key = Some(key);
        Ok(self)
    }

    /// Returns the key of KMS, if there is one.
    #[must_use]
    pub fn kms_key(&self) -> Option<&str> {
        self.kms_key.as_deref()
    }

    /// Returns what all names begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.names.prefix()
    }
}

impl Plan {
    /// Returns the tables.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        let text = Attribute::text;
        let by_state = Index {
            name: schema::BY_STATE,
            key: Key::partition(text(schema::PLACE)).sort(Attribute::number(schema::SINCE)),
            includes: &schema::PROJECTED,
        };
        let transactions = Table {
            id: "transactions",
            name: self.names.transactions(),
            holds: "transactions, requests and history",
            key: Key::partition(text(schema::ID)).sort(text(schema::PART)),
            indexes: vec![by_state],
            expires: Some(schema::EXPIRES_AT),
        };
        let outbox = Table {
            id: "outbox",
            name: self.names.outbox(),
            holds: "what committed steps still want done",
            key: Key::partition(text(schema::SLOT)).sort(text(schema::SERIAL)),
            indexes: Vec::new(),
            expires: None,
        };
        let letters = Table {
            id: "dead-letters",
            name: self.names.letters(),
            holds: "what could not be handled",
            key: Key::partition(text(letters::QUEUE)).sort(Attribute::number(letters::NUMBER)),
            indexes: Vec::new(),
            expires: None,
        };
        vec![transactions, outbox, letters]
    }

    /// Returns the queues, dead letters first.
    #[must_use]
    pub fn queues(&self) -> Vec<Queue> {
        let mut queues = vec![self.undelivered()];
        queues.extend(QueueName::ALL.map(|queue| self.dead_letters(queue)));
        queues.extend(QueueName::ALL.map(|queue| self.worked(queue)));
        queues
    }

    /// Returns the queue of the fires that the scheduler could not publish.
    #[must_use]
    pub fn undelivered(&self) -> Queue {
        let holds = "fires that the scheduler could not publish";
        let guarded = true;
        let heap = heap("schedules-dlq", self.names.undelivered(), holds);
        Queue { guarded, ..heap }
    }

    /// Returns the queue that the scheduler publishes fires to.
    #[must_use]
    pub fn fires(&self) -> Queue {
        self.worked(QueueName::Fires)
    }

    /// Returns the group of the schedules.
    #[must_use]
    pub fn group(&self) -> Group {
        let name = self.names.schedule_group();
        Group { name }
    }

    /// Returns the roles: the engine's, and the one that the engine hands to the scheduler.
    #[must_use]
    pub fn roles(&self, place: &Place) -> [Role; 2] {
        self.roles_of(place, &json!(ENGINE_SERVICE))
    }

    /// The same, for an engine that runs as this service.
    pub(super) fn roles_of(&self, place: &Place, service: &Value) -> [Role; 2] {
        let engine = Role {
            id: "engine",
            name: self.engine_role(),
            of: "the engines, and whoever runs `mamparo tx` and `dlq`",
            trust: policies::engine_trust(service),
            policy: policies::engine(self, place),
        };
        let scheduler = Role {
            id: "scheduler",
            name: self.scheduler_role(),
            of: "EventBridge Scheduler, to publish fires",
            trust: policies::scheduler_trust(self, place),
            policy: policies::scheduler(self, place),
        };
        [engine, scheduler]
    }

    /// Returns what whoever runs `mamparo aws apply` and `check` may do.
    #[must_use]
    pub fn setup_policy(&self, place: &Place) -> Value {
        policies::setup(self, place)
    }

    /// Returns the policy of a queue that only the engine and the scheduler may send to.
    #[must_use]
    pub fn guard(&self, place: &Place, queue: &str) -> Value {
        policies::guard(self, place, queue)
    }

    /// Returns what to watch.
    #[must_use]
    pub fn alarms(&self) -> Vec<Alarm> {
        alarms::of(self)
    }

    /// Returns the name of the engine's role.
    #[must_use]
    pub fn engine_role(&self) -> String {
        self.names.engine_role()
    }

    /// Returns the name of the role that publishes fires.
    #[must_use]
    pub fn scheduler_role(&self) -> String {
        self.names.scheduler_role()
    }

    fn worked(&self, queue: QueueName) -> Queue {
        let (id, holds) = match queue {
            QueueName::Answers => ("answers", "what dependencies said"),
            QueueName::Fires => ("fires", "what is due"),
            QueueName::Requests => ("requests", "what is to be sent"),
        };
        let dead = self.dead_letters(queue);
        Queue {
            retention: KEPT,
            wait: WAIT,
            dead_letters: Some(DeadLetters {
                id: dead.id,
                name: dead.name,
                max_receive_count: MAX_RECEIVE_COUNT,
            }),
            guarded: queue == QueueName::Fires,
            ..heap(id, self.names.queue(queue), holds)
        }
    }

    fn dead_letters(&self, queue: QueueName) -> Queue {
        let (id, holds) = match queue {
            QueueName::Answers => ("answers-dlq", "answers that nobody could even bury"),
            QueueName::Fires => ("fires-dlq", "fires that nobody could even bury"),
            QueueName::Requests => ("requests-dlq", "requests that nobody could even bury"),
        };
        heap(id, self.names.dead_letters(queue), holds)
    }
}

/// A queue whose messages wait for a person.
const fn heap(id: &'static str, name: String, holds: &'static str) -> Queue {
    Queue {
        id,
        name,
        holds,
        retention: KEPT_DEAD,
        visibility: VISIBILITY,
        wait: 0,
        dead_letters: None,
        guarded: false,
    }
}
