use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};

use super::extract::read_parent;
use super::method::Known;
use super::propagate::{BLOCK_LEN, LEN, kept, traceparent};
use super::*;
use crate::source::Started;

fn redacted(url: &str) -> String {
    full_url(&url.parse().unwrap())
}

/// OT-10.
#[test]
fn user_and_password_never_leave() {
    for url in ["https://me:secret@host/a", "https://me@host/a"] {
        assert_eq!(redacted(url), "https://REDACTED:REDACTED@host/a");
    }
}

/// OT-10.
#[test]
fn the_values_of_secret_query_keys_never_leave() {
    for key in [
        "X-Amz-Signature",
        "X-Amz-Credential",
        "X-Amz-Security-Token",
        "AWSAccessKeyId",
        "Signature",
        "sig",
        "X-Goog-Signature",
    ] {
        let url = redacted(&format!("http://h/p?a=1&{key}=s3cr=et&b=2"));
        assert_eq!(url, format!("http://h/p?a=1&{key}=REDACTED&b=2"));
    }
}

/// OT-10: the keys are case-sensitive.
#[test]
fn what_only_looks_like_a_secret_key_stays() {
    for url in [
        "http://h/p?SIG=1",
        "http://h/p?signature=1&sig",
        "http://h/p?a=sig&sigma=2",
        "http://h/p?",
        "http://h:81/",
        "/only/a/path?q",
    ] {
        assert_eq!(redacted(url), url);
    }
}

/// OT-05.
#[test]
fn host_and_port_come_from_the_address_and_its_scheme() {
    let servers = Servers::default();
    let server = |url: &str| {
        let server = servers
            .find(&url.parse().unwrap(), &HeaderMap::new())
            .unwrap();
        (server.address.to_string(), server.port)
    };
    assert_eq!(server("http://a/"), ("a".into(), Some(80)));
    assert_eq!(server("https://a/"), ("a".into(), Some(443)));
    assert_eq!(server("https://u:p@a:8443/"), ("a".into(), Some(8443)));
    assert_eq!(server("http://[::1]:81/"), ("::1".into(), Some(81)));
    assert_eq!(server("amqp://a/"), ("a".into(), None));
    assert_eq!(server("http://a/"), ("a".into(), Some(80)), "remembered");
    assert_eq!(
        server("https://a/"),
        ("a".into(), Some(443)),
        "the port is the scheme's"
    );
}

#[test]
fn without_an_address_the_host_header_says_where() {
    let mut headers = HeaderMap::new();
    let path = Uri::from_static("/p");
    assert_eq!(Servers::default().find(&path, &headers), None);
    headers.insert(HOST, "b:82".parse().unwrap());
    let server = Servers::default().find(&path, &headers).unwrap();
    assert_eq!((&*server.address, server.port), ("b", Some(82)));
    headers.insert(HOST, "not a host".parse().unwrap());
    assert_eq!(Servers::default().find(&path, &headers), None);
}

/// OT-09: the list replaces the standard one as a whole, and is case-sensitive.
#[test]
fn a_list_of_known_methods_replaces_the_standard_one() {
    let method = |name: &str| name.parse::<Method>().unwrap();
    let listed = Known::of(Some(" GET , PURGE,,".into()));
    assert_eq!(listed.find(&method("PURGE")), Some("PURGE"));
    assert_eq!(listed.find(&Method::POST), None);
    assert_eq!(listed.find(&method("get")), None);
    let standard = Known::of(Some("  ".into()));
    assert_eq!(standard.find(&Method::QUERY), Some("QUERY"));
    assert_eq!(standard.find(&method("PURGE")), None);
}

fn identity() -> SpanContext {
    SpanContext::new(
        TraceId::from(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c),
        SpanId::from(0x00f0_67aa_0ba9_02b7),
        TraceFlags::new(0xff),
        false,
        TraceState::NONE,
    )
}

#[test]
fn headers_that_take_no_more_carry_no_identity_and_no_stale_one() {
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", "00-1-2-00".parse().unwrap());
    let fill = |count: &u32| {
        let name = HeaderName::try_from(format!("x-{count}")).unwrap();
        headers.try_insert(name, HeaderValue::from(*count)).is_ok()
    };
    assert!((0..).take_while(fill).count() > 1_000);
    let span = Started::Unsampled {
        identity: identity(),
        context: None,
    };
    Propagation::global().inject(false, &span, &mut headers);
    assert_eq!(headers.get("traceparent"), None);
}

#[test]
fn a_traceparent_is_what_the_standard_says() {
    let identity = identity();
    let text = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-03";
    assert_eq!(traceparent(&identity), *text.as_bytes());
}

/// Values share a block, and each is whole as long as anybody has it.
#[test]
fn values_that_share_a_block_do_not_write_over_one_another() {
    let values: Vec<[u8; LEN]> = (0..=u8::MAX).map(|number| [number; LEN]).collect();
    let all: Vec<_> = values.iter().map(kept).collect();
    assert!(
        all.iter()
            .zip(&values)
            .all(|(kept, value)| **kept == *value)
    );
    let block = |at: usize| all[at].as_ptr() as usize;
    assert_eq!(block(1) - block(0), LEN, "side by side");
}

#[test]
fn a_block_that_nobody_reads_any_more_is_used_again() {
    let place = || kept(&[0; LEN]).as_ptr() as usize;
    let first = place();
    let again = (0..2 * BLOCK_LEN / LEN).filter(|_| place() == first);
    assert!(again.count() > 0);
}

fn read(value: &str) -> Option<(String, String, u8)> {
    let (trace, span, flags) = read_parent(value.as_bytes())?;
    Some((trace.to_string(), span.to_string(), flags.to_u8()))
}

/// W3C Trace Context level 2, §3.2, and OT-R11: what the specification refuses is refused.
#[test]
fn a_traceparent_is_read_as_the_specification_says() {
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let whole = format!("00-{trace}-{span}-01");
    let found = |flags| Some((trace.to_owned(), span.to_owned(), flags));
    assert_eq!(read(&whole), found(1));
    assert_eq!(
        read(&format!("00-{trace}-{span}-ff")),
        found(3),
        "known flags only"
    );
    assert_eq!(
        read(&format!("cc-{trace}-{span}-01")),
        found(1),
        "a later version"
    );
    assert_eq!(read(&format!("cc-{trace}-{span}-01-what")), found(1));
    for bad in [
        String::new(),
        format!("{whole}-more"),
        format!("{whole}-"),
        format!("ff-{trace}-{span}-01"),
        format!("cc-{trace}-{span}-01.what"),
        whole.to_uppercase(),
        whole.replace("00-0", "00-+"),
        whole.replace('-', "_"),
        format!("00-{}-{span}-01", "0".repeat(32)),
        format!("00-{trace}-{}-01", "0".repeat(16)),
        whole[..54].to_owned(),
        format!("0-{trace}-{span}-001"),
        "é".repeat(40),
    ] {
        assert_eq!(read(&bad), None, "{bad}");
    }
}

/// OT-R11: with two of them nobody knows which is meant.
#[test]
fn two_traceparents_are_none_and_a_bad_tracestate_is_dropped() {
    let mut headers = HeaderMap::new();
    let value = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    headers.append("traceparent", value.parse().unwrap());
    headers.append("tracestate", "no list at all".parse().unwrap());
    let propagation = Propagation::global();
    let context = propagation.extract(false, &headers).unwrap();
    let caller = context.span().span_context().clone();
    assert!(caller.is_remote() && caller.trace_state().header().is_empty());
    headers.append("traceparent", value.parse().unwrap());
    assert!(propagation.extract(false, &headers).is_none());
}
