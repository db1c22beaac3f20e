//! Each alert is fired by the trouble that it is about, and by no other.

use std::collections::BTreeSet;

use super::prometheus::promtool;
use super::rules::{self, alerts, folder};
use super::run::{Fired, run};

/// Who is in trouble, and what that sets off. `catalog`, `news` and `quotes` set off nothing.
const SET_OFF: &[(&str, &[&str])] = &[
    (
        "psp",
        &[
            "MamparoAmplificationOverLimit",
            "MamparoSendsRiseDemandFlat",
        ],
    ),
    ("search", &["MamparoRecoveryFalling"]),
    ("ledger", &["MamparoBudgetExhausted"]),
    ("stock", &["MamparoBreakerFlapping"]),
    ("reports", &["MamparoLateWork"]),
    ("images", &["MamparoLatencyUpSuccessFlat"]),
    // Relays, and a queue.
    ("invoices", &["MamparoRelayLag"]),
    ("orders", &["MamparoParkedEvent"]),
    ("mamparo.demo", &["MamparoDeadMessage"]),
    // The defer plane's are about its store.
    (
        "",
        &[
            "MamparoDeadLetter",
            "MamparoStuckTransactions",
            "MamparoOverdueTransactions",
        ],
    ),
];

pub(super) fn expected() -> BTreeSet<Fired> {
    let each = |(about, alerts): &(&str, &[&str])| {
        let fired = |alert: &&str| ((*alert).to_owned(), (*about).to_owned());
        alerts.iter().map(fired).collect::<Vec<_>>()
    };
    SET_OFF.iter().flat_map(each).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_alert_is_fired_by_its_trouble_and_none_in_health() {
    let expected = expected();
    let run = run(&expected).await;
    assert_eq!(run.in_health, BTreeSet::new(), "nothing is wrong yet");
    assert_eq!(run.in_trouble, expected);
}

#[test]
fn every_alert_is_set_off_in_a_test() {
    let rules = rules::read("alerts.yml");
    let listed: BTreeSet<_> = alerts(&rules)
        .iter()
        .map(|alert| alert.name.to_owned())
        .collect();
    let set_off: BTreeSet<_> = expected().into_iter().map(|(alert, _)| alert).collect();
    assert_eq!(listed, set_off);
}

#[test]
fn promtool_accepts_the_rules_and_their_unit_tests_pass() {
    for (command, file) in [
        (["check", "rules"], "alerts.yml"),
        (["test", "rules"], "alerts_test.yml"),
    ] {
        let output = promtool(&command, &folder().join(file));
        let said = [output.stdout, output.stderr].concat();
        assert!(
            output.status.success(),
            "{file}: {}",
            String::from_utf8_lossy(&said)
        );
    }
}

/// Whoever is woken by an alert finds what it means and what to do.
#[test]
fn every_alert_has_its_section_in_the_runbook() {
    let (rules, runbook) = (rules::read("alerts.yml"), rules::read("alerts.md"));
    let sections: Vec<&str> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## Mamparo"))
        .collect();
    let mut named = Vec::new();
    for alert in alerts(&rules) {
        let name = alert
            .name
            .strip_prefix("Mamparo")
            .expect("an alert of ours says so");
        let anchor = alert.name.to_lowercase();
        assert_eq!(alert.runbook, format!("alerts.md#{anchor}"));
        named.push(name);
    }
    assert_eq!(
        sections, named,
        "docs/operating/alerts.md has the alerts in their order"
    );
    for (number, section) in runbook.split("\n## Mamparo").skip(1).enumerate() {
        for part in ["**Means.**", "**Do.**"] {
            assert!(section.contains(part), "{} lacks {part}", named[number]);
        }
    }
}
