//! Who may depend on whom, and what every crate inherits from the root.

use std::process::Command;

use serde_json::Value;

use super::tree;

/// What a crate may use of ours, besides itself.
struct Rule {
    crate_name: &'static str,
    /// In `[dependencies]`.
    uses: &'static [&'static str],
    /// In `[dev-dependencies]`, besides those.
    tests_with: &'static [&'static str],
}

const RULES: &[Rule] = &[
    Rule {
        crate_name: "mamparo-core",
        uses: &[],
        tests_with: &[],
    },
    Rule {
        crate_name: "mamparo",
        uses: &["mamparo-core"],
        tests_with: &["mamparo-testkit"],
    },
    Rule {
        crate_name: "mamparo-telemetry",
        // The defer plane and messages with features only.
        uses: &["mamparo-core", "mamparo-durable", "mamparo-rabbitmq"],
        tests_with: &["mamparo-testkit"],
    },
    Rule {
        crate_name: "mamparo-durable",
        uses: &["mamparo-core", "mamparo"],
        tests_with: &["mamparo-testkit"],
    },
    Rule {
        crate_name: "mamparo-testkit",
        uses: &["mamparo-core"],
        tests_with: &[],
    },
    Rule {
        crate_name: "mamparo-sqlite",
        uses: BACKEND,
        tests_with: &[],
    },
    Rule {
        crate_name: "mamparo-postgres",
        uses: BACKEND,
        tests_with: &["mamparo-testkit"],
    },
    Rule {
        crate_name: "mamparo-redis",
        uses: BACKEND,
        tests_with: &["mamparo-testkit"],
    },
    Rule {
        crate_name: "mamparo-rabbitmq",
        uses: BACKEND,
        tests_with: &["mamparo-testkit"],
    },
    Rule {
        crate_name: "mamparo-aws",
        uses: BACKEND,
        tests_with: &["mamparo-testkit"],
    },
    Rule {
        crate_name: "mamparo-cli",
        uses: PUBLISHED,
        tests_with: &["mamparo-testkit"],
    },
    Rule {
        crate_name: "mamparo-bench",
        uses: ALL,
        tests_with: ALL,
    },
    Rule {
        crate_name: "mamparo-examples",
        uses: ALL,
        tests_with: ALL,
    },
    Rule {
        crate_name: "shop",
        uses: ALL,
        tests_with: ALL,
    },
    Rule {
        crate_name: "mamparo-tests",
        uses: ALL,
        tests_with: ALL,
    },
];

/// Of a crate with one heavy dependency.
const BACKEND: &[&str] = &["mamparo-core", "mamparo", "mamparo-durable"];
const PUBLISHED: &[&str] = &[
    "mamparo-core",
    "mamparo",
    "mamparo-telemetry",
    "mamparo-durable",
    "mamparo-sqlite",
    "mamparo-postgres",
    "mamparo-rabbitmq",
    "mamparo-redis",
    "mamparo-aws",
];
const ALL: &[&str] = &[
    "mamparo-core",
    "mamparo",
    "mamparo-telemetry",
    "mamparo-durable",
    "mamparo-sqlite",
    "mamparo-postgres",
    "mamparo-rabbitmq",
    "mamparo-redis",
    "mamparo-aws",
    "mamparo-testkit",
    "mamparo-cli",
];

/// Packages with dependencies of their own, which the root's `Cargo.toml` excludes.
const OUTSIDE: &[&str] = &["crates/mamparo-bench/peers/rust/", "tests/fuzz/"];

/// Heavy dependencies, by the start of their name, and the only crates that may name them.
const HEAVY: &[(&str, &[&str])] = &[
    // Besides its owner: whoever installs an SDK, to export or to look at what was written.
    (
        "opentelemetry",
        &[
            "mamparo-telemetry",
            "mamparo-bench",
            "mamparo-cli",
            "mamparo-examples",
            "mamparo-tests",
            "shop",
        ],
    ),
    ("rusqlite", &["mamparo-sqlite"]),
    ("sqlx", &["mamparo-postgres"]),
    ("lapin", &["mamparo-rabbitmq"]),
    ("redis", &["mamparo-redis"]),
    ("aws-", &["mamparo-aws"]),
];

#[test]
fn every_crate_depends_downwards_only() {
    let problems: Vec<String> = dependencies().iter().filter_map(refused).collect();
    tree::report(&problems);
}

#[test]
fn every_crate_has_a_rule_that_says_what_it_may_use() {
    let unruled = packages().into_iter().filter(|name| rule(name).is_none());
    let problems: Vec<String> = unruled
        .map(|name| format!("{name} has no rule: add it to RULES in tests/src/tidy/crates.rs, as docs/architecture.md says"))
        .collect();
    tree::report(&problems);
}

#[test]
fn only_its_own_crate_names_a_heavy_dependency() {
    let mut problems = Vec::new();
    for Dependency { from, to, .. } in dependencies() {
        let heavy = HEAVY.iter().find(|(start, _)| to.starts_with(start));
        if let Some((_, owners)) = heavy.filter(|(_, owners)| !owners.contains(&from.as_str())) {
            problems.push(format!("{from} names {to}, which only {owners:?} may: reach it through a trait of that crate"));
        }
    }
    tree::report(&problems);
}

#[test]
fn whoever_keeps_transactions_elsewhere_compiles_nothing_of_aws() {
    let others = RULES.iter().map(|rule| rule.crate_name);
    let others = others.filter(|name| !["mamparo-aws", "mamparo-cli"].contains(name));
    let others: Vec<_> = others.filter(|name| PUBLISHED.contains(name)).collect();
    let mut problems = Vec::new();
    for name in others {
        for found in compiled_by(name).lines().filter(|it| is_of_aws(it)) {
            problems.push(format!(
                "{name} compiles {found}: only mamparo-aws may bring it"
            ));
        }
    }
    tree::report(&problems);
    assert!(compiled_by("mamparo-aws").lines().any(is_of_aws));
}

/// A part of the SDK; `aws-lc-rs`, which some TLS brings, is none.
fn is_of_aws(package: &str) -> bool {
    ["aws-sdk-", "aws-config ", "aws-smithy-"]
        .iter()
        .any(|start| package.starts_with(start))
}

/// What a crate and its features bring, a package a line.
fn compiled_by(name: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--locked",
            "--edges=normal",
            "--prefix=none",
            "--all-features",
            "--package",
            name,
        ])
        .current_dir(tree::root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("names of packages")
}

#[test]
fn every_crate_inherits_the_lints_and_the_versions_of_the_root() {
    let mut problems = Vec::new();
    for file in tree::files() {
        let outside = OUTSIDE.iter().any(|folder| file.path.starts_with(folder));
        if file.path.ends_with("/Cargo.toml") && !outside {
            problems.extend(
                not_inherited(&file.text)
                    .into_iter()
                    .map(|problem| format!("{}: {problem}", file.path)),
            );
        }
    }
    tree::report(&problems);
}

#[derive(Debug)]
struct Dependency {
    from: String,
    to: String,
    dev: bool,
}

fn refused(Dependency { from, to, dev }: &Dependency) -> Option<String> {
    if !to.starts_with("mamparo") || from == to {
        return None;
    }
    let rule = rule(from)?;
    let allowed =
        rule.uses.contains(&to.as_str()) || (*dev && rule.tests_with.contains(&to.as_str()));
    (!allowed).then(|| format!("{from} must not depend on {to}: what both need goes down to mamparo-core (docs/architecture.md)"))
}

fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.crate_name == name)
}

fn packages() -> Vec<String> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("a list of packages");
    packages
        .iter()
        .map(|package| string(&package["name"]))
        .collect()
}

fn dependencies() -> Vec<Dependency> {
    let metadata = metadata();
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().expect("a list of packages") {
        for dependency in package["dependencies"]
            .as_array()
            .expect("a list of dependencies")
        {
            let (from, to) = (string(&package["name"]), string(&dependency["name"]));
            found.push(Dependency {
                from,
                to,
                dev: dependency["kind"] == "dev",
            });
        }
    }
    found
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(tree::root())
        .output()
        .expect("cargo runs");
    serde_json::from_slice(&output.stdout).expect("cargo prints its metadata as JSON")
}

fn string(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

/// What a member's manifest spells out that the root says for all.
fn not_inherited(manifest: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut section = "";
    let mut lints = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
        }
        lints |= section == "lints" && line == "workspace = true";
        let shared = ["version", "edition", "rust-version", "license"]
            .iter()
            .any(|key| line.starts_with(&format!("{key} =")));
        let versioned = section.ends_with("dependencies")
            && line.contains('=')
            && !line.contains("workspace = true");
        if versioned || (section == "package" && shared) {
            problems.push(format!("`{line}` is not inherited: say it once in the root's Cargo.toml and write `workspace = true` here"));
        }
        if section.contains("dependencies.") && line.starts_with('[') {
            problems.push(format!(
                "`{line}` is a table: write the dependency on one line"
            ));
        }
    }
    if !lints {
        problems
            .push("the lints are not inherited: add `[lints]` with `workspace = true`".to_owned());
    }
    problems
}

#[test]
fn a_dependency_upwards_is_refused_and_one_for_tests_only_is_not() {
    let edge = |from: &str, to: &str, dev| Dependency {
        from: from.to_owned(),
        to: to.to_owned(),
        dev,
    };
    assert!(refused(&edge("mamparo-core", "mamparo", false)).is_some());
    assert!(refused(&edge("mamparo", "mamparo-testkit", false)).is_some());
    assert_eq!(refused(&edge("mamparo", "mamparo-testkit", true)), None);
    assert_eq!(
        refused(&edge("mamparo-telemetry", "mamparo-core", false)),
        None
    );
}

#[test]
fn a_version_a_table_and_missing_lints_are_each_a_problem() {
    let good = "[package]\nversion.workspace = true\n[dependencies]\nhttp.workspace = true\ntokio = { workspace = true }\n";
    assert_eq!(
        not_inherited(&format!("{good}[lints]\nworkspace = true")),
        Vec::<String>::new()
    );
    assert_eq!(not_inherited(good).len(), 1);
    assert_eq!(
        not_inherited("[dependencies]\nhttp = \"1\"\n[lints]\nworkspace = true").len(),
        1
    );
    assert_eq!(
        not_inherited("[package]\nedition = \"2024\"\n[lints]\nworkspace = true").len(),
        1
    );
    assert_eq!(
        not_inherited("[dependencies.http]\nworkspace = true\n[lints]\nworkspace = true").len(),
        1
    );
}
