//! The dashboard draws what the program writes, operations and attempts apart.

use std::collections::BTreeSet;

use serde_json::{Value, json};

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
            let query = variable["query"].as_str().expect("a query");
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

/// As much of Grafana's schema of dashboards (version 39) as this one uses.
fn schema() -> Value {
    let source = json!({
        "required": ["type", "uid"],
        "properties": { "type": { "const": "prometheus" }, "uid": { "const": "${datasource}" } },
    });
    let legend = json!({ "required": ["calcs", "displayMode", "placement", "showLegend"] });
    let target = json!({
        "required": ["refId", "datasource", "expr", "legendFormat"],
        "properties": { "refId": { "pattern": "^[A-Z]$" }, "datasource": source },
    });
    let drawn = json!({
        "required": ["description", "datasource", "fieldConfig", "options", "targets"],
        "properties": {
            "description": { "minLength": 1 },
            "datasource": source,
            "fieldConfig": {
                "required": ["defaults", "overrides"],
                "properties": { "defaults": { "required": ["unit", "color", "thresholds", "custom"] } },
            },
            "options": { "required": ["legend", "tooltip"], "properties": { "legend": legend } },
            "targets": { "minItems": 1, "items": target },
        },
    });
    let place = json!({ "type": "integer", "minimum": 0, "maximum": 24 });
    let panel = json!({
        "required": ["id", "type", "title", "gridPos"],
        "properties": {
            "id": { "type": "integer", "minimum": 1 },
            "type": { "enum": ["row", "timeseries", "state-timeline"] },
            "title": { "type": "string", "minLength": 1 },
            "gridPos": {
                "required": ["x", "y", "w", "h"],
                "properties": { "x": place, "y": { "type": "integer" }, "w": place, "h": place },
            },
        },
        "if": { "properties": { "type": { "const": "row" } } },
        "then": { "required": ["collapsed", "panels"] },
        "else": drawn,
    });
    let variable = json!({
        "required": ["name", "type", "query", "current", "hide", "multi", "includeAll", "skipUrlSync"],
        "properties": {
            "type": { "enum": ["query", "datasource"] },
            "query": { "type": "string" },
            "current": { "required": ["text", "value"] },
        },
    });
    json!({
        "required": ["uid", "title", "schemaVersion", "templating", "panels", "time", "annotations"],
        "properties": {
            "schemaVersion": { "const": 39 },
            "templating": { "required": ["list"], "properties": { "list": { "items": variable } } },
            "panels": { "items": panel },
        },
    })
}

#[test]
fn the_dashboard_is_one_that_grafana_reads() {
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    let problems = schema
        .iter_errors(&read().0)
        .map(|problem| format!("{}: {problem}", problem.instance_path()))
        .collect::<Vec<_>>();
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn each_panel_has_an_id_and_a_place_of_its_own() {
    let dashboard = read();
    let mut ids = BTreeSet::new();
    let mut places: Vec<[u64; 4]> = Vec::new();
    for panel in dashboard.0["panels"].as_array().unwrap() {
        let title = &panel["title"];
        assert!(
            ids.insert(panel["id"].as_u64()),
            "{title} has the id of another"
        );
        let place = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        let [x, y, w, h] = place;
        assert!(x + w <= 24 && w > 0 && h > 0, "{title} is outside");
        for [left, top, width, height] in &places {
            let apart = x >= left + width || *left >= x + w || y >= top + height || *top >= y + h;
            assert!(apart, "{title} lies over another");
        }
        places.push(place);
    }
}

#[test]
fn each_query_of_a_panel_has_a_name_of_its_own() {
    for panel in read().panels() {
        let targets = panel["targets"].as_array().unwrap();
        let names: BTreeSet<_> = targets.iter().map(|it| it["refId"].as_str()).collect();
        assert_eq!(names.len(), targets.len(), "{}", panel["title"]);
    }
}
