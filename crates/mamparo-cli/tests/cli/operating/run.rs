//! One life of the demonstration beside a Prometheus: well for a while, then in trouble.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mamparo_core::clock;
use mamparo_testkit::private::PrivateRabbit;
use tokio::sync::OnceCell;

use super::demo::Demo;
use super::prometheus::Prometheus;
use super::{dashboard, rules};

/// What it is to Prometheus.
const JOB: &str = "shop";

/// Long enough that there is a "before", which begins where the rules' last ten minutes do, here seconds.
const WELL: Duration = Duration::from_secs(20);

/// As long as trouble may go on before the last alert.
const TROUBLE: Duration = Duration::from_secs(30);

/// How long after the last expected alert one more may still come.
const AFTERWARDS: Duration = Duration::from_secs(3);

/// An alert, and the dependency, relay or queue that it is about.
pub(super) type Fired = (String, String);

/// The labels that say what an alert is about; it has one of them at most.
const ABOUT: [&str; 3] = [
    "mamparo_dependency",
    "mamparo_outbox_relay",
    "mamparo_message_queue",
];

/// What Prometheus saw.
#[derive(Debug)]
pub(super) struct Run {
    /// What fired while all was well.
    pub(super) in_health: BTreeSet<Fired>,
    /// What has fired in the end.
    pub(super) in_trouble: BTreeSet<Fired>,
    /// Each expression of the dashboard, and how many series it came to.
    pub(super) drawn: BTreeMap<String, usize>,
    /// What can be chosen for each variable of the dashboard.
    pub(super) choices: BTreeMap<String, Vec<String>>,
}

/// Both tests look at one run, since it takes a while.
pub(super) async fn run(expected: &BTreeSet<Fired>) -> &'static Run {
    static RUN: OnceCell<Run> = OnceCell::const_new();
    RUN.get_or_init(|| live(expected)).await
}

async fn live(expected: &BTreeSet<Fired>) -> Run {
    let broker = PrivateRabbit::shared().await;
    let mut demo = Demo::start(WELL, &broker.url()).await;
    let rules = rules::hurried(&rules::read("alerts.yml"));
    let prometheus = Prometheus::start(JOB, demo.address, &rules).await;
    demo.until_in_trouble().await;
    // Nothing fires before a second of trouble is scraped and reckoned with.
    let in_health = fired(&prometheus).await;
    let began = clock::now();
    while !fired(&prometheus).await.is_superset(expected) && began.elapsed() < TROUBLE {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    tokio::time::sleep(AFTERWARDS).await;
    let mut run = Run {
        in_health,
        in_trouble: fired(&prometheus).await,
        drawn: BTreeMap::new(),
        choices: BTreeMap::new(),
    };
    let dashboard = dashboard::read();
    for expression in dashboard.expressions() {
        let drawn = prometheus.query(&expression).await;
        let numbers = drawn.iter().filter(|sample| sample.value.is_finite());
        run.drawn.insert(expression, numbers.count());
    }
    for variable in dashboard.variables() {
        let values = prometheus
            .label_values(variable.series, variable.label)
            .await;
        run.choices.insert(variable.label.to_owned(), values);
    }
    prometheus.stop().await;
    run
}

/// All that has ever fired.
async fn fired(prometheus: &Prometheus) -> BTreeSet<Fired> {
    let ever = r#"count_over_time(ALERTS{alertstate="firing"}[1h])"#;
    let ever = prometheus.query(ever).await;
    let fired = ever.iter().map(|it| {
        let about: String = ABOUT.iter().map(|name| it.label(name)).collect();
        (it.label("alertname").to_owned(), about)
    });
    fired.collect()
}
