//! Operators: they see what Prometheus scrapes, and nothing else.

use std::time::Duration;

use mamparo_core::clock;
use tokio::time::sleep;

use super::day::PATIENCE;

/// Between two scrapes; a Prometheus takes longer.
const SCRAPE: Duration = Duration::from_millis(200);

/// Whoever watches the processes.
pub(super) struct Operators {
    client: reqwest::Client,
    urls: Vec<(&'static str, String)>,
}

impl Operators {
    pub(super) fn new(urls: Vec<(&'static str, String)>) -> Self {
        let client = reqwest::Client::new();
        Self { client, urls }
    }

    /// Adds up the series that are asked for, such as `shop_messages_total{queue="orders.saga",settled="done"}`, of one service; 0 where
    /// there are none, or nobody answers.
    pub(super) async fn read(&self, service: &str, asked: &str) -> f64 {
        let (metric, labels) = asked.split_once('{').unwrap_or((asked, ""));
        let labels: Vec<&str> = labels.trim_end_matches('}').split(',').collect();
        let page = self.page(service).await.unwrap_or_default();
        let series = page.lines().filter_map(|line| {
            let (name, rest) = line.split_once('{')?;
            let (found, value) = rest.rsplit_once("} ")?;
            let is_it = name == metric && labels.iter().all(|label| found.contains(label));
            is_it.then(|| value.parse().unwrap_or(0.0))
        });
        series.fold(0.0, |sum, value: f64| sum + value)
    }

    /// Scrapes until a metric is as it is wanted, or the time is over; returns the last value.
    pub(super) async fn until(
        &self,
        service: &str,
        asked: &str,
        wanted: impl Fn(f64) -> bool,
    ) -> f64 {
        let begun = clock::now();
        loop {
            let value = self.read(service, asked).await;
            if wanted(value) || begun.elapsed() > PATIENCE {
                return value;
            }
            sleep(SCRAPE).await;
        }
    }

    async fn page(&self, service: &str) -> Option<String> {
        let (_, url) = self.urls.iter().find(|(name, _)| *name == service)?;
        let answer = self
            .client
            .get(format!("{url}/metrics"))
            .send()
            .await
            .ok()?;
        answer.text().await.ok()
    }
}
