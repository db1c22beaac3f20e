//! The report for code scanners: SARIF 2.1.0 (OASIS, 2023).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::found::Found;
use crate::policies::Finding;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// One run, in which each finding is a result.
pub(super) fn sarif(found: &Found) -> Value {
    let codes: BTreeSet<_> = found.findings.iter().map(|finding| finding.code).collect();
    let rules: Vec<_> = codes.iter().map(|code| json!({ "id": code })).collect();
    let results: Vec<_> = found.findings.iter().map(result).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "mamparo",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": results,
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let about = match finding.path.is_empty() {
        true => String::new(),
        false => format!("{}: ", finding.path),
    };
    let mut result = json!({
        "ruleId": finding.code,
        "level": finding.severity,
        "message": { "text": format!("{about}{}. Remedy: {}", finding.message, finding.remedy) },
    });
    if let Some(location) = location(finding) {
        result["locations"] = json!([location]);
    }
    result
}

fn location(finding: &Finding) -> Option<Value> {
    let (file, line) = (finding.file.as_ref()?, finding.line?);
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(file) },
            "region": { "startLine": line },
        },
    });
    if !finding.path.is_empty() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": finding.path }]);
    }
    Some(location)
}

/// A path as a relative reference (RFC 3986, section 4.2): what it may not hold is escaped.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.replace('\\', "/").bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(byte.into());
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
