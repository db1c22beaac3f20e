//! What a copy keeps, and what it must not: pure.

use std::time::{Duration, SystemTime};

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldArray, FieldTable, ShortString};

use super::support::{text, with_headers};
use crate::message::{Copied, attempts_made, copy};
use crate::{Topology, headers};

const AT: SystemTime = SystemTime::UNIX_EPOCH;

fn whole() -> BasicProperties {
    let mut nested = FieldTable::default();
    nested.insert("deep".into(), AMQPValue::Double(0.5));
    let headers = [
        (
            "traceparent",
            text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ),
        ("no-utf8", AMQPValue::LongString(vec![0xff, 0xfe].into())),
        ("nested", AMQPValue::FieldTable(nested)),
        (
            "list",
            AMQPValue::FieldArray(FieldArray::from(vec![
                AMQPValue::Void,
                AMQPValue::Boolean(true),
            ])),
        ),
        ("number", AMQPValue::LongLongInt(i64::MIN)),
    ];
    with_headers(headers)
        .with_content_type("application/json".into())
        .with_content_encoding("gzip".into())
        .with_delivery_mode(2)
        .with_priority(3)
        .with_correlation_id("c".into())
        .with_reply_to("r".into())
        .with_message_id("m".into())
        .with_timestamp(7)
        .with_type("t".into())
        .with_app_id("a".into())
        .with_cluster_id("k".into())
}

fn table(properties: &BasicProperties) -> FieldTable {
    properties.headers().clone().unwrap_or_default()
}

fn retried(properties: &BasicProperties) -> BasicProperties {
    copy(
        properties,
        "orders",
        "order.placed",
        Copied::Retry { attempts: 1 },
    )
}

#[test]
fn a_copy_is_the_message_but_for_the_headers_that_are_ours() {
    let copied = retried(&whole());
    let mut expected = table(&whole());
    expected.insert(headers::ATTEMPTS.into(), AMQPValue::LongUInt(1));
    expected.insert(headers::ORIGIN_EXCHANGE.into(), text("orders"));
    expected.insert(headers::ORIGIN_ROUTING_KEY.into(), text("order.placed"));
    assert_eq!(copied, whole().with_headers(expected));
}

#[test]
fn a_copy_of_a_copy_tells_its_first_producers_exchange() {
    let again = copy(
        &retried(&whole()),
        "q.dlx",
        "q",
        Copied::Retry { attempts: 2 },
    );
    assert_eq!(
        table(&again).inner()[headers::ORIGIN_EXCHANGE],
        text("orders")
    );
    assert_eq!(
        table(&again).inner()[headers::ATTEMPTS],
        AMQPValue::LongUInt(2)
    );
    assert_eq!(
        table(&again).inner().len(),
        table(&retried(&whole())).inner().len()
    );
}

#[test]
fn what_would_make_the_broker_act_again_is_moved_where_it_only_tells() {
    let list = AMQPValue::FieldArray(FieldArray::from(vec![text("elsewhere")]));
    let acting = with_headers([
        ("CC", list.clone()),
        ("BCC", list.clone()),
        ("x-death", list.clone()),
        ("x-delivery-count", AMQPValue::LongInt(3)),
    ])
    .with_expiration("5000".into())
    .with_user_id("guest".into());
    let copied = retried(&acting);
    assert_eq!((copied.expiration(), copied.user_id()), (&None, &None));
    let headers = table(&copied);
    for gone in ["CC", "BCC", "x-death", "x-delivery-count"] {
        assert!(!headers.contains_key(gone), "{gone}");
    }
    assert_eq!(headers.inner()[headers::ORIGIN_CC], list);
    assert_eq!(headers.inner()[headers::ORIGIN_EXPIRATION], text("5000"));
    assert_eq!(headers.inner()[headers::ORIGIN_USER], text("guest"));
}

#[test]
fn a_dead_letter_tells_why_and_when_and_whom_to_ask_and_a_requeued_one_no_more() {
    let topology = Topology::builder("q")
        .owner("team")
        .runbook("https://wiki")
        .build()
        .unwrap();
    let dead = Copied::Dead {
        attempts: 5,
        reason: "exhausted",
        detail: &"ñ".repeat(5000),
        at: AT + Duration::from_millis(1_500),
        topology: &topology,
    };
    let dead = copy(&retried(&whole()), "", "q", dead);
    let told = table(&dead);
    let expected = [
        (headers::ATTEMPTS, AMQPValue::LongUInt(5)),
        (headers::DEAD_REASON, text("exhausted")),
        (headers::DEAD_DETAIL, text(&"ñ".repeat(2048))),
        (headers::DEAD_AT, text("1970-01-01T00:00:01.500Z")),
        (headers::OWNER, text("team")),
        (headers::RUNBOOK, text("https://wiki")),
    ];
    for (name, value) in expected {
        assert_eq!(told.inner()[name], value, "{name}");
    }
    let back = copy(&dead, "", "q.dlq", Copied::Requeued { at: AT });
    let mut expected = table(&retried(&whole())).inner().clone();
    expected.remove(headers::ATTEMPTS);
    expected.insert(
        ShortString::from(headers::REPROCESSED),
        text("1970-01-01T00:00:00.000Z"),
    );
    assert_eq!(table(&back).inner(), &expected);
}

#[test]
fn attempts_are_believed_only_within_bounds() {
    let read = |value| attempts_made(&with_headers([(headers::ATTEMPTS, value)]), 5);
    assert_eq!(attempts_made(&BasicProperties::default(), 5), 0);
    for (value, attempts) in [
        (AMQPValue::LongUInt(3), 3),
        (AMQPValue::LongInt(-3), 0),
        (AMQPValue::LongLongInt(i64::MIN), 0),
        (AMQPValue::LongLongInt(i64::MAX), 4),
        (AMQPValue::ShortShortUInt(255), 4),
        (AMQPValue::ShortInt(2), 2),
        (AMQPValue::Void, 0),
        (text("3"), 0),
    ] {
        assert_eq!(read(value.clone()), attempts, "{value:?}");
    }
}
