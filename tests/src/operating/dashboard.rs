//! The dashboard draws what the program writes, operations and attempts apart.

use serde_json::Value;

use super::alerts::expected;
use super::rules;
use super::run::run;

/// What Grafana fills in: a window, and what was chosen.
const FILLED: &[(&str, &str)] = &[
    ("$__rate_interval", "5s"),
    ("$job", ".*"),
    ("$dependency", ".*"),
];

pub(super) struct Dashboard(Value);

/// A variable that is filled from Prometheus.
pub(super) struct Variable<'a> {
    pub(super) series: &'a str,
    pub(super) label: &'a str,
}

pub(super) fn read() -> Dashboard {
    Dashboard(serde_json::from_str(&rules::read("dashboard.json")).expect("JSON"))
}

impl Dashboard {
    /// Its panels, but for the rows' headings.
    fn panels(&self) -> impl Iterator<Item = &Value> {
        let panels = self.0["panels"].as_array().expect("panels").iter();
        panels.filter(|panel| panel["type"] != "row")
    }

    /// Each panel's expressions, as they were written.
    fn written(panel: &Value) -> impl Iterator<Item = &str> {
        let targets = panel["targets"].as_array().expect("targets").iter();
        targets.map(|target| target["expr"].as_str().expect("an expression"))
    }

    /// All expressions, filled in.
    pub(super) fn expressions(&self) -> Vec<String> {
        let filled = |expression: &str| {
            let fill = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
            FILLED.iter().fold(expression.to_owned(), fill)
        };
        self.panels().flat_map(Self::written).map(filled).collect()
    }

    pub(super) fn variables(&self) -> Vec<Variable<'_>> {
        let variables = self.0["templating"]["list"]
            .as_array()
            .expect("variables")
            .iter();
        let queries = variables.filter(|variable| variable["type"] == "query");
        let parsed = queries.map(|variable| {
            let query = variable["query"]["query"].as_str().expect("a query");
            let inside = query
                .strip_prefix("label_values(")
                .and_then(|it| it.strip_suffix(')'));
            let (series, label) = inside.expect("label_values").rsplit_once(", ").unwrap();
            // A label selector that follows another variable matches all.
            let series = series.split('{').next().unwrap();
            Variable { series, label }
        });
        parsed.collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_of_the_dashboard_returns_data() {
    let run = run(&expected()).await;
    let empty = run.drawn.iter().filter(|(_, series)| **series == 0);
    let empty: Vec<_> = empty.map(|(expression, _)| expression).collect();
    assert!(empty.is_empty(), "nothing to draw: {empty:#?}");
    assert!(run.drawn.len() >= 20, "{}", run.drawn.len());
    assert_eq!(run.choices["job"], ["shop"]);
    assert!(run.choices["mamparo_dependency"].contains(&"psp".to_owned()));
}

/// Divided by one another they say how much is resent; drawn over each other they look like twice the traffic.
#[test]
fn operations_and_attempts_are_on_separate_panels() {
    let dashboard = read();
    let mut shown = (0, 0);
    for panel in dashboard.panels() {
        let counts = |of: &str| {
            Dashboard::written(panel)
                .filter(|it| it.contains(of))
                .count()
        };
        let operations = counts("mamparo_operations_total") + counts("mamparo:operations:");
        let attempts = counts("mamparo_attempts_total") + counts("mamparo:attempts:");
        let ratio = Dashboard::written(panel).any(|it| it.contains('/'));
        assert!(
            ratio || operations == 0 || attempts == 0,
            "{}",
            panel["title"]
        );
        shown = (shown.0 + operations, shown.1 + attempts);
    }
    assert!(shown.0 > 0 && shown.1 > 0);
}

#[test]
fn the_panels_have_names_units_and_places_of_their_own() {
    let dashboard = read();
    let mut ids = Vec::new();
    let mut places: Vec<[u64; 4]> = Vec::new();
    for panel in dashboard.0["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().expect("a title");
        ids.push(panel["id"].as_u64().expect("an id"));
        let place = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect(title));
        let [x, y, w, h] = place;
        assert!(x + w <= 24 && w > 0 && h > 0, "{title} is outside");
        for [left, top, width, height] in &places {
            let apart = x >= left + width || *left >= x + w || y >= top + height || *top >= y + h;
            assert!(apart, "{title} lies over another");
        }
        places.push(place);
    }
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    for panel in dashboard.panels() {
        let title = &panel["title"];
        assert!(
            panel["fieldConfig"]["defaults"]["unit"].is_string(),
            "{title} has no unit"
        );
        assert!(
            panel["description"]
                .as_str()
                .is_some_and(|it| !it.is_empty()),
            "{title} says nothing"
        );
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        let mut refs: Vec<_> = panel["targets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["refId"].as_str())
            .collect();
        refs.dedup();
        assert_eq!(
            refs.len(),
            panel["targets"].as_array().unwrap().len(),
            "{title}"
        );
    }
}
