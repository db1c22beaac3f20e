//! A short game day: as a person runs it, with real processes, broker and database.

use std::process::Command;

/// What is broken, one of each kind; the whole day takes two and a half minutes.
const FAULTS: [&str; 5] = [
    "calm",
    "catalog-stopped",
    "dead-bank",
    "stuck-saga",
    "two-watchdogs",
];

#[test]
fn on_a_game_day_everybody_sees_what_is_expected() {
    let faults = FAULTS.iter().flat_map(|fault| ["--fault", fault]);
    let shop = Command::new(env!("CARGO_BIN_EXE_shop"))
        .arg("gameday")
        .args(faults)
        .arg("--json")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&shop.stderr);
    assert!(shop.status.success(), "{told}");
    let table: serde_json::Value = serde_json::from_slice(&shop.stdout).unwrap();
    let rows = table.as_array().unwrap();
    for fault in FAULTS {
        let of = rows.iter().filter(|row| row["fault"] == fault);
        assert!(
            of.clone().count() >= 3,
            "{fault} is looked at by everybody: {told}"
        );
        assert!(of.clone().all(|row| row["holds"] == true));
    }
}

#[test]
fn the_policies_of_all_services_contradict_nothing() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/policies");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let policies = mamparo::policy::Policies::load([&path]).unwrap();
        assert!(
            policies.warnings().is_empty(),
            "{path:?}: {:?}",
            policies.warnings()
        );
    }
}
