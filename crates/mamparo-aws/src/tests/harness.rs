//! Fires schedules, which the local server never does: it reads them through the API and delivers them as the service may.

use std::collections::HashMap;
use std::time::Duration;

use fastrand::Rng;
use mamparo_durable::machine::Utc;
use tokio::task::JoinHandle;

use crate::Aws;

/// Makes other fires late, early and double than by default.
const SEED: &str = "MAMPARO_FIRES_SEED";

/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// How well the service keeps its promises.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// As late as a fire may be.
    pub(super) late: Duration,
    /// As early as one fire in ten may be.
    pub(super) early: Duration,
    /// Whether one in four comes twice.
    pub(super) twice: bool,
}

impl Manner {
    pub(super) const PROMPT: Self = Self {
        late: Duration::ZERO,
        early: Duration::ZERO,
        twice: false,
    };

    pub(super) const UNRELIABLE: Self = Self {
        late: Duration::from_millis(30),
        early: Duration::from_millis(300),
        twice: true,
    };
}

/// Fires until it is dropped.
#[derive(Debug)]
pub(super) struct Harness(JoinHandle<()>);

impl Harness {
    pub(super) fn start(aws: &Aws, manner: Manner) -> Self {
        let seed = std::env::var(SEED).map_or(0, |text| text.parse().unwrap());
        println!("{SEED}={seed}");
        let firing = Firing {
            aws: aws.clone(),
            manner,
            rng: Rng::with_seed(seed),
            known: HashMap::new(),
        };
        Self(tokio::spawn(firing.run()))
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Firing {
    aws: Aws,
    manner: Manner,
    rng: Rng,
    /// By name and when it was made: a name may come again.
    known: HashMap<(String, String), Plan>,
}

struct Plan {
    when: Utc,
    queue: String,
    input: String,
}

impl Firing {
    async fn run(mut self) {
        loop {
            let listed = self.list().await;
            self.known.retain(|key, _| listed.contains(key));
            for key in listed {
                if !self.known.contains_key(&key) {
                    let read = self.read(&key.0).await;
                    self.known.extend(read.map(|plan| (key.clone(), plan)));
                }
                if self
                    .known
                    .get(&key)
                    .is_some_and(|plan| plan.when <= self.aws.now())
                {
                    self.fire(&key).await;
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn list(&self) -> Vec<(String, String)> {
        let listed = self.aws.scheduler().list_schedules();
        let listed = listed
            .group_name(self.aws.names().schedule_group())
            .max_results(100);
        let mut pages = listed.into_paginator().items().send();
        let mut all = Vec::new();
        while let Some(Ok(it)) = pages.next().await {
            let made = it
                .creation_date
                .map_or_else(String::new, |at| at.to_string());
            all.push((it.name.unwrap(), made));
        }
        all
    }

    /// `None` if it was deleted meanwhile.
    async fn read(&mut self, name: &str) -> Option<Plan> {
        let group = self.aws.names().schedule_group();
        let asked = self
            .aws
            .scheduler()
            .get_schedule()
            .name(name)
            .group_name(group);
        let found = asked.send().await.ok()?;
        let target = found.target.unwrap();
        let input = target.input.unwrap();
        let body: serde_json::Value = serde_json::from_str(&input).unwrap();
        let due = Utc::from_millis(body["due"].as_i64().unwrap()).unwrap();
        let at = found.schedule_expression.unwrap();
        let at: Utc = format!("{}Z", &at[3..22]).parse().unwrap();
        let second = Duration::from_secs(1);
        assert!(at.plus(second) >= due && due.plus(second) > at);
        let late = self.manner.late.mul_f64(self.rng.f64());
        let early = match self.rng.u32(..10) {
            0 => self.manner.early.mul_f64(self.rng.f64()),
            _ => Duration::ZERO,
        };
        Some(Plan {
            // Not the whole second that the service is told, so that no test waits for that.
            when: due.plus(late).minus(early),
            queue: target.arn.rsplit(':').next().unwrap().to_owned(),
            input,
        })
    }

    async fn fire(&mut self, key: &(String, String)) {
        let plan = self.known.remove(key).unwrap();
        let sqs = self.aws.sqs();
        let found = sqs.get_queue_url().queue_name(&plan.queue).send().await;
        let url = found.unwrap().queue_url.unwrap();
        let times = if self.manner.twice && self.rng.u32(..4) == 0 {
            2
        } else {
            1
        };
        for _ in 0..times {
            let sent = sqs.send_message().queue_url(&url).message_body(&plan.input);
            sent.send().await.unwrap();
        }
        // It may have been deleted after it fired: so it is with the service.
        let delete = self.aws.scheduler().delete_schedule().name(&key.0);
        drop(
            delete
                .group_name(self.aws.names().schedule_group())
                .send()
                .await,
        );
    }
}
