//! The list of settings as a JSON Schema, for editors.

use serde_json::{Map, Value, json};

use super::field::{Field, Kind};
use super::{DEPENDENCY, EXTERNAL_RETRIER, SERVER, SERVICE};

/// A duration as `humantime` reads it: numbers with units, one after the other.
const DURATION: &str = r"^\s*([0-9]+\s*[a-zA-Zµ]+\s*)+$";

/// The JSON Schema (draft 2020-12) of a policy file.
///
/// ```
/// let schema = mamparo::policy::json_schema();
/// assert_eq!(schema["properties"]["dependency"]["type"], "object");
/// ```
#[must_use]
pub fn json_schema() -> Value {
    let named = |says: &str| {
        json!({
            "description": says,
            "type": "object",
            "additionalProperties": { "$ref": "#/$defs/dependency" },
        })
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Policies of mamparo",
        "description": "The policies of all dependencies of a service.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "$schema": { "type": "string", "description": "Where this schema is, for editors." },
            "service": table(SERVICE),
            "server": table(SERVER),
            "external_retrier": {
                "description": "What sends requests again outside of these policies: an SDK, a gateway, a mesh.",
                "type": "array",
                "items": table(EXTERNAL_RETRIER),
            },
            "profile": named("What several dependencies share, by name."),
            "dependency": named("The policy of each dependency, by name."),
        },
        "$defs": { "dependency": table(DEPENDENCY) },
    })
}

fn table(fields: &[Field]) -> Value {
    let properties: Map<_, _> = fields
        .iter()
        .map(|field| (field.name.to_owned(), property(field)))
        .collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn property(field: &Field) -> Value {
    let mut property = kind(&field.kind);
    if let Value::Object(members) = &mut property {
        let says = format!("{} The default is {}.", field.says, field.default);
        members.insert("description".to_owned(), says.into());
    }
    property
}

fn kind(kind: &Kind) -> Value {
    match kind {
        Kind::Duration => json!({ "type": "string", "pattern": DURATION }),
        Kind::Limit(none) => json!({ "anyOf": [
            { "const": none },
            { "type": "string", "pattern": DURATION },
        ] }),
        Kind::Count(least, i64::MAX) => json!({ "type": "integer", "minimum": least }),
        Kind::Count(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Number(least, most) if *most == f64::MAX => {
            json!({ "type": "number", "minimum": least })
        }
        Kind::Number(least, most) => {
            json!({ "type": "number", "minimum": least, "maximum": most })
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Text => json!({ "type": "string" }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Words(words) => json!({ "type": "array", "items": { "enum": words } }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Statuses => json!({
            "type": "array",
            "items": { "type": "integer", "minimum": 400, "maximum": 599 },
        }),
        Kind::Table(fields) => table(fields),
        Kind::Switch(words, fields) => json!({ "anyOf": [{ "enum": words }, table(fields)] }),
    }
}
