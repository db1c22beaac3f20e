//! The JSON Schema of a policy file: shipped as it is generated, and of one mind with the loader.

use std::fs;

use mamparo::policy::Policies;
use serde_json::Value;

use crate::run::mamparo;

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.schema.json");
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/policies");

fn shipped() -> Value {
    let text = fs::read_to_string(SHIPPED).expect("it is shipped");
    serde_json::from_str(&text).expect("JSON")
}

fn read(file: &str) -> Value {
    let text = fs::read_to_string(format!("{FOLDER}/{file}")).expect(file);
    toml::from_str(&text).expect(file)
}

#[tokio::test]
async fn the_shipped_schema_is_what_the_command_prints() {
    let ran = mamparo(&["schema"]).await;
    assert_eq!(ran.code, 0);
    let hint = "write it anew: cargo run -p mamparo-cli -- schema > docs/policy.schema.json";
    assert!(ran.json() == shipped(), "{hint}");
}

#[test]
fn the_schema_accepts_what_the_loader_accepts() {
    let schema = jsonschema::draft202012::new(&shipped()).expect("a schema");
    assert!(jsonschema::meta::is_valid(&shipped()));
    let files = [
        "defensible.toml",
        "mesh.toml",
        "chain/gateway.toml",
        "chain/orders.toml",
        "chain/inventory.toml",
    ];
    for file in files {
        let document = read(file);
        let told = schema.iter_errors(&document).map(|it| it.to_string());
        assert_eq!(told.collect::<Vec<_>>(), Vec::<String>::new(), "{file}");
        Policies::loader()
            .file(format!("{FOLDER}/{file}"))
            .load()
            .expect(file);
    }
}

/// What the documentation shows is what the schema and the loader accept.
#[test]
fn the_schema_accepts_every_file_that_the_documentation_shows() {
    let schema = jsonschema::draft202012::new(&shipped()).expect("a schema");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = |file: &str| fs::read_to_string(format!("{root}/{file}")).expect(file);
    let mut shown = vec![("examples/policies.toml", text("examples/policies.toml"))];
    for file in ["README.md", "docs/policy.md", "docs/cli.md"] {
        let page = text(file);
        let blocks = page.split("```toml\n").skip(1);
        let blocks = blocks.filter_map(|block| Some(block.split_once("```")?.0.to_owned()));
        shown.extend(
            blocks
                .filter(|block| block.contains("[dependency."))
                .map(|block| (file, block)),
        );
    }
    for (file, document) in &shown {
        let value: Value = toml::from_str(document).expect(file);
        let told = schema.iter_errors(&value).map(|it| it.to_string());
        assert_eq!(
            told.collect::<Vec<_>>(),
            Vec::<String>::new(),
            "{file}: {document}"
        );
        let loader = Policies::loader().text(file, &**document, mamparo::policy::Format::Toml);
        let policies = loader.load().expect(file);
        assert_eq!(policies.warnings(), [], "{file}");
    }
    let files: std::collections::BTreeSet<_> = shown.iter().map(|(file, _)| file).collect();
    assert_eq!(files.len(), 4, "{files:?}");
}

/// Each of these lines fails both ways.
#[test]
fn the_schema_refuses_what_the_loader_refuses() {
    let schema = jsonschema::draft202012::new(&shipped()).expect("a schema");
    let broken = [
        "retries = { max_attempts = 3 }",
        "deadline = 5",
        "deadline = \"soon\"",
        "protocol = \"soap\"",
        "breaker = { failure_rate = 50 }",
        "breaker = \"on\"",
        "retry = { max_attempts = 0 }",
        "retry = { also_retry = [200] }",
        "retry = { backoff = { base = \"100\" } }",
        "budget = \"off\"",
        "bulkhead = { max_concurrent = 1.5 }",
        "hedge = { idempotent_only = \"yes\" }",
        "url = 80",
        "retry = { methods = [\"get\"] }",
        "retry = { also_retry = [\"breaker_open\"] }",
        "idempotency_key = { retention = 24 }",
        "budget = { max_concurrent = 0 }",
    ];
    for line in broken {
        let document = format!("[dependency.catalog]\n{line}\n");
        let value: Value = toml::from_str(&document).expect(line);
        assert!(!schema.is_valid(&value), "{line}");
        let loader = Policies::loader().text("f", document, mamparo::policy::Format::Toml);
        assert!(loader.load().is_err(), "{line}");
    }
    assert!(!schema.is_valid(&read("broken.toml")));
}
