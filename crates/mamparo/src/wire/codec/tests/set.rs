use http::HeaderMap;

use super::super::{DeadlineHeaders, MAX_DEADLINE_HEADERS, Read};
use super::forms::*;

fn every_header() -> DeadlineHeaders {
    let forms = every_form();
    DeadlineHeaders::new(
        forms
            .into_iter()
            .filter(|header| header.name() != "in-millis"),
    )
    .unwrap()
}

fn map<const N: usize>(headers: [(&'static str, &'static str); N]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name, HeaderValue::from_static(value));
    }
    map
}

fn read_all<'a, const N: usize>(
    set: &'a DeadlineHeaders,
    headers: [(&'static str, &'static str); N],
) -> Read<'a> {
    set.read_all(&map(headers), wall())
}

/// DH-01
#[test]
fn of_several_headers_the_smallest_wins() {
    let set = every_header();
    let read = read_all(
        &set,
        [
            ("grpc-timeout", "3S"),
            ("in-seconds", "2"),
            ("connect-timeout-ms", "2500"),
        ],
    );
    assert_eq!(read.remaining(), Some(seconds(2)));
    assert!(!read.is_absolute());
    assert_eq!(read.malformed(), None);

    let read = read_all(
        &set,
        [("grpc-timeout", "3S"), ("at-millis", "1700000001000")],
    );
    assert_eq!(read.remaining(), Some(seconds(1)));
    assert!(read.is_absolute());

    let read = read_all(
        &set,
        [
            ("at-millis", "1700000004000"),
            ("at", "2023-11-14T22:13:22Z"),
            ("at-millis", "1700000003000"),
        ],
    );
    assert_eq!(read.remaining(), Some(seconds(2)));

    let read = read_all(
        &set,
        [("grpc-timeout", "1S"), ("at-millis", "1700000001000")],
    );
    assert_eq!(read.remaining(), Some(seconds(1)));
    assert!(
        !read.is_absolute(),
        "a relative header that says the same is preferred"
    );

    let read = read_all(
        &set,
        [
            ("x-envoy-expected-rq-timeout-ms", "0"),
            ("grpc-timeout", "1H"),
        ],
    );
    assert_eq!(
        read.remaining(),
        Some(seconds(3_600)),
        "anything is less than infinite"
    );
}

/// DH-01
#[test]
fn of_several_values_of_one_header_the_smallest_wins() {
    let set = DeadlineHeaders::default();
    let read = read_all(
        &set,
        [
            ("x-request-timeout-ms", "300"),
            ("x-request-timeout-ms", "200"),
            ("x-request-timeout-ms", "400"),
        ],
    );
    assert_eq!(read.remaining(), Some(millis(200)));
}

/// DH-04
#[test]
fn a_malformed_value_is_named_and_the_others_are_read() {
    let set = every_header();
    let read = read_all(
        &set,
        [
            ("in-seconds", "1.5"),
            ("connect-timeout-ms", "-1"),
            ("connect-timeout-ms", "700"),
            ("grpc-timeout", "2S"),
        ],
    );
    assert_eq!(read.remaining(), Some(millis(700)));
    assert_eq!(
        read.malformed().unwrap(),
        "connect-timeout-ms",
        "the first in the order of the set"
    );

    let read = read_all(&set, [("grpc-timeout", "+5S")]);
    assert_eq!(read.remaining(), None);
    assert_eq!(read.malformed().unwrap(), "grpc-timeout");
}

/// DH-08
#[test]
fn headers_outside_the_set_are_not_read() {
    let headers = [("grpc-timeout", "0S")];
    assert_eq!(
        read_all(&DeadlineHeaders::default(), headers).remaining(),
        None
    );
    let none = DeadlineHeaders::new([]).unwrap();
    assert_eq!(read_all(&none, headers).remaining(), None);
}

/// DH-09
#[test]
fn consumed_headers_are_stripped_and_fresh_ones_written() {
    let set = every_header();
    let mut headers = map([
        ("grpc-timeout", "9S"),
        ("in-seconds", "9"),
        ("in-seconds", "8"),
        ("at", "2023-11-14T22:13:29Z"),
        ("accept", "*/*"),
    ]);
    set.strip(&mut headers);
    assert_eq!(headers, map([("accept", "*/*")]));

    let mut headers = map([
        ("x-request-timeout-ms", "9000"),
        ("x-request-timeout-ms", "8000"),
        ("accept", "*/*"),
    ]);
    let fresh = DeadlineHeaders::default();
    fresh
        .write_all(&mut headers, Duration::from_millis(250), wall())
        .unwrap();
    assert_eq!(
        headers,
        map([("x-request-timeout-ms", "250"), ("accept", "*/*")])
    );
}

#[test]
fn every_header_of_a_set_is_written_in_its_own_form() {
    let set = every_header();
    let mut headers = HeaderMap::new();
    set.write_all(&mut headers, Duration::from_secs(5), wall())
        .unwrap();
    assert_eq!(headers.len(), set.iter().len());
    assert_eq!(headers["grpc-timeout"], "5000000u");
    assert_eq!(headers["at"], "2023-11-14T22:13:25.000Z");
    assert_eq!(set.read_all(&headers, wall()).remaining(), Some(seconds(5)));
}

#[test]
fn a_full_header_map_is_an_error_and_keeps_no_stale_value() {
    let numbered = |number: usize| DeadlineHeader::millis(&format!("x-{number}")).unwrap();
    let mut headers = HeaderMap::new();
    let stale = HeaderValue::from_static("9000");
    let mut number = 0;
    while headers
        .try_insert(numbered(number).name(), stale.clone())
        .is_ok()
    {
        number += 1;
    }

    let one = DeadlineHeaders::from(numbered(0));
    one.write_all(&mut headers, Duration::from_secs(1), wall())
        .unwrap();
    assert_eq!(headers["x-0"], "1000");

    let two = DeadlineHeaders::new([DeadlineHeader::request_timeout_ms(), numbered(0)]).unwrap();
    let written = two.write_all(&mut headers, Duration::from_millis(500), wall());
    assert!(written.is_err());
    assert_eq!(headers.get("x-0"), None);
}

#[test]
fn a_set_is_bounded_and_names_a_header_once() {
    let numbered =
        |count: usize| (0..count).map(|i| DeadlineHeader::millis(&format!("x-{i}")).unwrap());
    assert!(DeadlineHeaders::new(numbered(MAX_DEADLINE_HEADERS)).is_ok());
    let error = DeadlineHeaders::new(numbered(MAX_DEADLINE_HEADERS + 1)).unwrap_err();
    assert_eq!(error.setting(), "deadline headers");

    let twice = [
        DeadlineHeader::millis("x-timeout").unwrap(),
        DeadlineHeader::seconds("X-Timeout").unwrap(),
    ];
    assert_eq!(
        DeadlineHeaders::new(twice).unwrap_err().value(),
        "x-timeout"
    );
}
