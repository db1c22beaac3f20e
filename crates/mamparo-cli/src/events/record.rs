//! A parked event, as it is shown.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mamparo_durable::events::{Event, ParkedEvent};
use mamparo_durable::machine::Label;
use serde_json::{Value, json};

use crate::output::{plain, plain_lines};

/// An event, in a line.
pub(super) fn line(parked: &ParkedEvent) -> String {
    let about = match &parked.event {
        Ok(event) => {
            let key = event.key().map(|key| format!("  key {key}"));
            let (exchange, routing_key) = (event.destination(), event.routing_key());
            format!(
                "{}{}  to {exchange}/{routing_key}",
                event.id(),
                key.unwrap_or_default()
            )
        }
        Err(_) => "an event that can't be read".to_owned(),
    };
    let (number, times, at) = (parked.number, parked.failures, parked.parked_at);
    let why = parked.reason.as_str();
    plain(&format!(
        "{number}  {about}  failed {times} times  {at}  {why}"
    ))
}

/// An event with all that is in it.
pub(super) fn whole(parked: &ParkedEvent) -> String {
    let mut text = line(parked) + "\n";
    let event = match &parked.event {
        Ok(event) => event,
        Err(why) => return text + &plain(&format!("  {}", why.as_str())) + "\n",
    };
    let content_type = event.content_type().map(|it| ("content-type", it));
    for (name, value) in content_type.into_iter().chain(event.headers()) {
        text += &plain(&format!("  {name}: {value}"));
        text.push('\n');
    }
    let payload = String::from_utf8_lossy(event.payload());
    format!("{text}\n{}\n", plain_lines(&payload))
}

/// An event, as JSON.
pub(super) fn in_json(parked: &ParkedEvent) -> Value {
    let event = parked.event.as_ref().ok();
    json!({
        "number": parked.number,
        "id": event.map(Event::id),
        "key": event.and_then(Event::key),
        "destination": event.map(Event::destination),
        "routing_key": event.map(Event::routing_key),
        "created_at": event.map(|event| event.created_at().to_string()),
        "failures": parked.failures,
        "parked_at": parked.parked_at.to_string(),
        "reason": parked.reason.as_str(),
        "unreadable": parked.event.as_ref().err().map(Label::as_str),
        "bytes": event.map(|event| event.payload().len()),
    })
}

/// The same, with all that is in it. A payload that is no text is in base64.
pub(super) fn whole_in_json(parked: &ParkedEvent) -> Value {
    let mut json = in_json(parked);
    if let Ok(event) = &parked.event {
        let headers = event.headers().map(|(name, value)| json!([name, value]));
        json["content_type"] = event.content_type().into();
        json["headers"] = headers.collect();
        let text = std::str::from_utf8(event.payload());
        json["payload"] = text.ok().into();
        let bytes = text
            .is_err()
            .then(|| BASE64_STANDARD.encode(event.payload()));
        json["payload_base64"] = bytes.into();
    }
    json
}
