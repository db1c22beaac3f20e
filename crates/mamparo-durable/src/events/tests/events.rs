use super::super::{Event, EventBuilder, StoredEvent};
use crate::limits::{MAX_EVENT_BYTES, MAX_EVENT_HEADER_BYTES, MAX_EVENT_HEADERS};

fn refused(change: impl FnOnce(EventBuilder) -> EventBuilder) -> &'static str {
    let event = change(Event::builder("id").key("key").to("orders", "placed"));
    event.build().unwrap_err().setting()
}

#[test]
fn what_a_broker_would_not_take_is_refused_when_it_is_made() {
    assert_eq!(Event::builder("").build().unwrap_err().setting(), "id");
    assert_eq!(refused(|event| event.key("")), "key");
    assert_eq!(refused(|event| event.key("k".repeat(256))), "key");
    assert_eq!(refused(|event| event.to("a\nb", "")), "destination");
    assert_eq!(refused(|event| event.to("", "\0")), "routing_key");
    assert_eq!(
        refused(|event| event.content_type("\u{7f}")),
        "content_type"
    );
    assert_eq!(refused(|event| event.header("n".repeat(300), "")), "header");
    assert_eq!(refused(|event| event.header("n", "\0")), "headers");
    assert_eq!(
        refused(|event| event.header("n", "v".repeat(MAX_EVENT_HEADER_BYTES))),
        "headers"
    );
    let many = |event| {
        (0..=MAX_EVENT_HEADERS).fold(event, |event: EventBuilder, _| event.header("n", "v"))
    };
    assert_eq!(refused(many), "headers");
    assert_eq!(
        refused(|event| event.payload(vec![0; MAX_EVENT_BYTES + 1])),
        "payload"
    );
}

#[test]
fn content_type_and_headers_are_read_back_as_they_were_written() {
    let event = Event::builder("order-7/placed")
        .content_type("application/json")
        .header("traceparent", "00-ab-cd-01")
        .header("naïve \"quoted\"", "é\n")
        .build();
    let event = event.unwrap();
    let stored = |head: String| StoredEvent {
        id: event.id().to_owned(),
        key: None,
        destination: String::new(),
        routing_key: String::new(),
        head,
        payload: Vec::new(),
        created_at: event.created_at().millis(),
    };
    assert_eq!(stored(event.head()).read().unwrap(), event);
    assert!(stored("not JSON".to_owned()).read().is_err());
}
