//! Operators: they see what Prometheus scrapes, and nothing else.

use std::time::Duration;

use mamparo_core::clock;
use tokio::time::sleep;

/// Between two scrapes; a Prometheus takes longer.
const SCRAPE: Duration = Duration::from_millis(200);

/// What is looked for on a page: a metric, and some of its labels.
pub(super) type Series<'a> = (&'a str, &'a [(&'a str, &'a str)]);

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

    /// Adds up a metric's series with these labels, of one service; 0 where there are none, or nobody answers.
    pub(super) async fn read(&self, service: &str, (metric, labels): Series<'_>) -> f64 {
        let page = self.page(service).await.unwrap_or_default();
        let mut sum = 0.0;
        for line in page.lines() {
            let Some((name, rest)) = line.split_once('{') else {
                continue;
            };
            let Some((found, value)) = rest.rsplit_once("} ") else {
                continue;
            };
            let has =
                |(label, value): &(&str, &str)| found.contains(&format!("{label}=\"{value}\""));
            if name == metric && labels.iter().all(has) {
                sum += value.parse().unwrap_or(0.0);
            }
        }
        sum
    }

    /// Scrapes until a metric is as it is wanted, or the time is over; returns the last value.
    pub(super) async fn until(
        &self,
        service: &str,
        series: Series<'_>,
        wanted: impl Fn(f64) -> bool,
        within: Duration,
    ) -> f64 {
        let begun = clock::now();
        loop {
            let value = self.read(service, series).await;
            if wanted(value) || begun.elapsed() > within {
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
