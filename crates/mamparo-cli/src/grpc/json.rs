//! Messages as JSON, in protobuf's own mapping.

use prost_reflect::{DynamicMessage, MessageDescriptor, SerializeOptions};
use serde::de::DeserializeSeed;

use super::names::{list, meant};

/// Reads a message of a type.
///
/// # Errors
///
/// Which field is wrong and why, in one line.
pub(crate) fn from_json(
    descriptor: &MessageDescriptor,
    json: &[u8],
) -> Result<DynamicMessage, String> {
    let mut path = serde_path_to_error::Track::new();
    let mut json = serde_json::Deserializer::from_slice(json);
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut path);
    let message = descriptor.clone().deserialize(tracked);
    let read = message.and_then(|message| json.end().map(|()| message));
    read.map_err(|error| {
        let why = error.to_string();
        let hint = unknown(&why).map_or_else(String::new, |name| fields(descriptor, name));
        let path = path.path().to_string();
        let at = match path.as_str() {
            "." | "?" => String::new(),
            path => format!("`{path}`: "),
        };
        format!("{at}{why}{hint}")
    })
}

/// The name that is no field's, where that is the trouble.
fn unknown(why: &str) -> Option<&str> {
    let (_, name) = why.split_once("unrecognized field name '")?;
    name.split('\'').next()
}

/// Says which fields there are, unless the name is one of a message further in.
fn fields(descriptor: &MessageDescriptor, name: &str) -> String {
    let names: Vec<_> = descriptor.fields().collect();
    let names = || names.iter().map(|field| field.name());
    match meant(name, names()) {
        Some(meant) => format!(": did you mean `{meant}`?"),
        None if names().next().is_none() => format!(": {} has no fields", descriptor.name()),
        None => format!(": {} has {}", descriptor.name(), list(names())),
    }
}

/// Writes a message, with the fields that are not set too, so that its form can be seen.
///
/// # Errors
///
/// Why it has no such form: it holds an `Any` of a type that is not described.
pub(crate) fn to_json(message: &DynamicMessage) -> Result<serde_json::Value, String> {
    let options = SerializeOptions::new().skip_default_fields(false);
    message
        .serialize_with_options(serde_json::value::Serializer, &options)
        .map_err(|error| error.to_string())
}
