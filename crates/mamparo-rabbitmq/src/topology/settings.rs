//! Which queues there are.

use std::time::Duration;

use mamparo_core::InvalidSetting;

use super::names;

/// What a message waits before it is tried again, where nothing else is said.
const DELAY: Duration = Duration::from_secs(30);

/// As many delays as there may be: each is a queue.
const MOST_DELAYS: usize = 16;

/// The longest delay: RabbitMQ's own bound is a little further.
const LONGEST_DELAY: Duration = Duration::from_secs(40 * 86_400);

/// As long as a queue's name may be: with what is added, RabbitMQ takes 255 bytes.
const LONGEST_NAME: usize = 200;

/// As often as a message is delivered again without having been settled, where nothing else is said.
const DELIVERY_LIMIT: u32 = 20;

/// The queues of one consumer: `<queue>`, what waits to be tried again, and the dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    pub(crate) queue: String,
    pub(crate) delays: Vec<Duration>,
    pub(crate) delivery_limit: u32,
    pub(crate) owner: String,
    pub(crate) runbook: String,
    pub(crate) bindings: Vec<(String, String)>,
}

impl Topology {
    /// Starts from the queue's name and the defaults.
    pub fn builder(queue: impl Into<String>) -> TopologyBuilder {
        TopologyBuilder(Self {
            queue: queue.into(),
            delays: vec![DELAY],
            delivery_limit: DELIVERY_LIMIT,
            owner: String::new(),
            runbook: String::new(),
            bindings: Vec::new(),
        })
    }

    /// Returns the name of the queue that is consumed.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Returns the name of the queue of dead letters.
    #[must_use]
    pub fn dead_letters(&self) -> String {
        format!("{}.dlq", self.queue)
    }

    /// Returns the name of the exchange that hands messages from one of the queues to another.
    #[must_use]
    pub fn exchange(&self) -> String {
        format!("{}.dlx", self.queue)
    }

    /// Returns the queue in which a message waits after that many failed attempts, from 1, and for how long.
    ///
    /// ```
    /// use mamparo_rabbitmq::Topology;
    /// use std::time::Duration;
    ///
    /// let growing = [Duration::from_secs(10), Duration::from_secs(60)];
    /// let topology = Topology::builder("shop").delays(growing).build()?;
    /// assert_eq!(topology.retry(1), ("shop.retry.10s".to_owned(), growing[0]));
    /// assert_eq!(topology.retry(9), ("shop.retry.1m".to_owned(), growing[1]));
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    #[must_use]
    pub fn retry(&self, attempts: u32) -> (String, Duration) {
        let last = self.delays.len() - 1;
        let step = usize::try_from(attempts.saturating_sub(1)).unwrap_or(last);
        self.step(step.min(last))
    }

    /// Returns the first of those queues in which it waits at least as long, or the last one.
    pub(crate) fn retry_after(&self, attempts: u32, hint: Duration) -> (String, Duration) {
        let (queue, delay) = self.retry(attempts);
        if delay >= hint {
            return (queue, delay);
        }
        let longer = self.delays.iter().position(|&delay| delay >= hint);
        self.step(longer.unwrap_or(self.delays.len() - 1))
    }

    /// Returns every queue in which messages wait, and for how long.
    pub(crate) fn retries(&self) -> impl Iterator<Item = (String, Duration)> + '_ {
        (0..self.delays.len()).map(|step| self.step(step))
    }

    fn step(&self, step: usize) -> (String, Duration) {
        let delay = self.delays[step];
        let name = match self.delays.len() {
            1 => format!("{}.retry", self.queue),
            _ => format!("{}.retry.{}", self.queue, names::delay(delay)),
        };
        (name, delay)
    }

    /// Returns who answers for the queue; empty if nobody is named.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns what to do about its dead letters; empty if nothing is said.
    #[must_use]
    pub fn runbook(&self) -> &str {
        &self.runbook
    }
}

/// Makes a [`Topology`].
///
/// ```
/// use mamparo_rabbitmq::Topology;
///
/// let topology = Topology::builder("payments").owner("team payments").runbook("https://wiki/payments").build()?;
/// assert_eq!(topology.retry(1).0, "payments.retry");
/// assert_eq!(topology.dead_letters(), "payments.dlq");
/// let refused = Topology::builder("payments").delays([]).build().unwrap_err();
/// assert_eq!(refused.to_string(), "delays = 0 is refused: must be between 1 and 16, each longer than the one before");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct TopologyBuilder(Topology);

impl TopologyBuilder {
    /// Sets one delay for every retry; 30 s by default.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.0.delays = vec![delay];
        self
    }

    /// Sets growing delays: the first retry waits the first, and those past the end wait the last. Each is a queue.
    pub fn delays(mut self, delays: impl IntoIterator<Item = Duration>) -> Self {
        self.0.delays = delays.into_iter().collect();
        self
    }

    /// Sets how often the broker delivers a message again that nobody settled; 20 by default. Then it is among the dead
    /// letters: it may be what kills its consumers.
    pub const fn delivery_limit(mut self, deliveries: u32) -> Self {
        self.0.delivery_limit = deliveries;
        self
    }

    /// Says who answers for the queue; it is written on each dead letter.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.0.owner = owner.into();
        self
    }

    /// Says what to do about dead letters, such as the URL of a page; it is written on each.
    pub fn runbook(mut self, runbook: impl Into<String>) -> Self {
        self.0.runbook = runbook.into();
        self
    }

    /// Binds the queue to an exchange that exists, by a routing key.
    pub fn bind(mut self, exchange: impl Into<String>, routing_key: impl Into<String>) -> Self {
        self.0.bindings.push((exchange.into(), routing_key.into()));
        self
    }

    /// Checks it.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] for a name or delays that RabbitMQ would refuse, or delays that don't grow.
    pub fn build(self) -> Result<Topology, InvalidSetting> {
        let Self(topology) = self;
        let refuse = |setting, value: &dyn std::fmt::Display, reason| {
            Err(InvalidSetting::new(setting, value, reason))
        };
        let name = &topology.queue;
        if name.is_empty() || name.len() > LONGEST_NAME || name.starts_with("amq.") {
            let reason =
                "must have 1 to 200 bytes and not begin with `amq.`, which is RabbitMQ's own";
            return refuse("queue", name, reason);
        }
        let delays = &topology.delays;
        let growing = delays.is_sorted_by(|one, next| one < next);
        if delays.is_empty() || delays.len() > MOST_DELAYS || !growing {
            let reason = "must be between 1 and 16, each longer than the one before";
            return refuse("delays", &delays.len(), reason);
        }
        let whole =
            |delay: &Duration| delay.subsec_nanos().is_multiple_of(1_000_000) && !delay.is_zero();
        if let Some(odd) = delays
            .iter()
            .find(|delay| !whole(delay) || **delay > LONGEST_DELAY)
        {
            let reason = "must be whole milliseconds, from one to 40 days";
            return refuse("delay", &format!("{odd:?}"), reason);
        }
        if topology.delivery_limit == 0 {
            return refuse(
                "delivery_limit",
                &0,
                "must be at least 1: a connection may be lost",
            );
        }
        let long = |text: &String| text.len() > 255;
        if topology
            .bindings
            .iter()
            .any(|(exchange, key)| long(exchange) || long(key))
        {
            return refuse("bind", &"a long name", "must have at most 255 bytes");
        }
        Ok(topology)
    }
}
