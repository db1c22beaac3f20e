//! How a message is copied from one of the queues to another: pure.

use std::time::SystemTime;

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use super::headers;
use crate::Topology;
use crate::link::short;

/// As many bytes as are told of what an attempt said.
const LONGEST_DETAIL: usize = 4096;

/// Where a copy goes, which is what its headers say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Copied<'a> {
    /// It will be tried again, after so many attempts.
    Retry { attempts: u32 },
    /// Nobody could handle it.
    Dead {
        attempts: u32,
        reason: &'a str,
        detail: &'a str,
        at: SystemTime,
        topology: &'a Topology,
    },
    /// A person puts it back.
    Requeued { at: SystemTime },
}

/// Returns the properties of the copy: the message's own, but for the headers of [`headers`].
pub(crate) fn copy(
    properties: &BasicProperties,
    exchange: &str,
    routing_key: &str,
    copied: Copied<'_>,
) -> BasicProperties {
    let (copy, moved) = without_what_acts(properties);
    let mut kept = FieldTable::default();
    for (name, value) in properties.headers().iter().flat_map(FieldTable::inner) {
        match name.as_str() {
            "CC" => kept.insert(short(headers::ORIGIN_CC), value.clone()),
            // Of those before the copy, nothing counts.
            of_broker if headers::OF_THE_BROKER.contains(&of_broker) => &mut kept,
            "BCC" | headers::ATTEMPTS | headers::NOT_BEFORE => &mut kept,
            of_dead if headers::OF_DEAD.contains(&of_dead) => &mut kept,
            _ => kept.insert(name.clone(), value.clone()),
        };
    }
    for (name, value) in moved {
        kept.insert(short(name), text(value.as_str()));
    }
    for (name, value) in [
        (headers::ORIGIN_EXCHANGE, exchange),
        (headers::ORIGIN_ROUTING_KEY, routing_key),
    ] {
        if !kept.contains_key(name) {
            kept.insert(short(name), text(value));
        }
    }
    stamp(&mut kept, copied);
    copy.with_headers(kept)
}

/// The properties without those that make the broker do something, and those apart.
fn without_what_acts(
    properties: &BasicProperties,
) -> (BasicProperties, Vec<(&'static str, ShortString)>) {
    let mut copy = BasicProperties::default();
    macro_rules! keep {
        ($($get:ident => $set:ident),+) => {
            $(if let Some(value) = properties.$get() { copy = copy.$set(value.clone()); })+
        };
    }
    keep!(content_type => with_content_type, content_encoding => with_content_encoding,
        correlation_id => with_correlation_id, reply_to => with_reply_to, message_id => with_message_id,
        kind => with_type, app_id => with_app_id, cluster_id => with_cluster_id,
        delivery_mode => with_delivery_mode, priority => with_priority, timestamp => with_timestamp);
    let acting = [
        (headers::ORIGIN_EXPIRATION, properties.expiration()),
        (headers::ORIGIN_USER, properties.user_id()),
    ];
    let moved = acting
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.clone()?)));
    (copy, moved.collect())
}

fn stamp(headers: &mut FieldTable, copied: Copied<'_>) {
    let mut put = |name, value| {
        headers.insert(short(name), value);
    };
    match copied {
        Copied::Retry { attempts } => put(headers::ATTEMPTS, AMQPValue::LongUInt(attempts)),
        Copied::Dead {
            attempts,
            reason,
            detail,
            at,
            topology,
        } => {
            put(headers::ATTEMPTS, AMQPValue::LongUInt(attempts));
            put(headers::DEAD_REASON, text(reason));
            put(headers::DEAD_DETAIL, text(cut(detail)));
            put(headers::DEAD_AT, instant(at));
            for (name, value) in [
                (headers::OWNER, topology.owner()),
                (headers::RUNBOOK, topology.runbook()),
            ] {
                if !value.is_empty() {
                    put(name, text(value));
                }
            }
        }
        Copied::Requeued { at } => put(headers::REPROCESSED, instant(at)),
    }
}

/// A header that is a whole number.
pub(crate) fn number(properties: &BasicProperties, name: &str) -> Option<i64> {
    let value = properties.headers().as_ref()?.inner().get(name)?;
    Some(match value {
        AMQPValue::ShortShortInt(number) => i64::from(*number),
        AMQPValue::ShortShortUInt(number) => i64::from(*number),
        AMQPValue::ShortInt(number) => i64::from(*number),
        AMQPValue::ShortUInt(number) => i64::from(*number),
        AMQPValue::LongInt(number) => i64::from(*number),
        AMQPValue::LongUInt(number) => i64::from(*number),
        AMQPValue::LongLongInt(number) => *number,
        _ => return None,
    })
}

/// The same properties, with a header that is a whole number.
pub(crate) fn with_number(properties: BasicProperties, name: &str, number: i64) -> BasicProperties {
    let mut headers = properties.headers().clone().unwrap_or_default();
    headers.insert(short(name), AMQPValue::LongLongInt(number));
    properties.with_headers(headers)
}

/// Reads how many attempts were made, whatever somebody wrote there: at least none, and fewer than `max`.
pub(crate) fn attempts_made(properties: &BasicProperties, max: u32) -> u32 {
    let number = number(properties, headers::ATTEMPTS).unwrap_or(0);
    let most = i64::from(max.saturating_sub(1));
    u32::try_from(number.clamp(0, most)).unwrap_or(0)
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

fn instant(at: SystemTime) -> AMQPValue {
    text(&humantime::format_rfc3339_millis(at).to_string())
}

fn cut(detail: &str) -> &str {
    let mut end = detail.len().min(LONGEST_DETAIL);
    while !detail.is_char_boundary(end) {
        end -= 1;
    }
    &detail[..end]
}
