//! Whom a request is taken to be from, whatever its headers say.

use std::collections::HashSet;
use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, Request};

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn headers(name: &'static str, lines: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(name, HeaderValue::from_bytes(line.as_bytes()).unwrap());
    }
    headers
}

const OURS: [&str; 3] = ["10.0.0.0/8", "2001:db8:aa::/48", "192.0.2.1"];

#[test]
fn x_forwarded_for_is_read_from_its_end_as_far_as_proxies_are_trusted() {
    let proxies = TrustedProxies::x_forwarded_for(OURS).unwrap();
    let cases: [(&str, &[&str], &str); 16] = [
        // Nobody stands between: whatever is written there is the client's own.
        ("203.0.113.9", &["1.1.1.1"], "203.0.113.9"),
        ("10.1.1.1", &["203.0.113.9"], "203.0.113.9"),
        ("10.1.1.1", &["1.1.1.1, 203.0.113.9"], "203.0.113.9"),
        (
            "10.1.1.1",
            &["10.9.9.9, 203.0.113.9, 10.2.2.2"],
            "203.0.113.9",
        ),
        (
            "10.1.1.1",
            &["1.1.1.1", "203.0.113.9", "10.2.2.2"],
            "203.0.113.9",
        ),
        ("192.0.2.1", &["203.0.113.9:4711"], "203.0.113.9"),
        ("10.1.1.1", &["[2001:db8::9]:4711"], "2001:db8::9"),
        ("10.1.1.1", &["2001:db8::9"], "2001:db8::9"),
        ("2001:db8:aa::1", &["203.0.113.9"], "203.0.113.9"),
        ("::ffff:10.1.1.1", &["::ffff:203.0.113.9"], "203.0.113.9"),
        // All of them are ours: a request from inside.
        ("10.1.1.1", &["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
        ("10.1.1.1", &[], "10.1.1.1"),
        // What can't be read hides what stands before it, and the proxy that wrote it pays.
        ("10.1.1.1", &["203.0.113.9, unknown, 10.2.2.2"], "10.2.2.2"),
        ("10.1.1.1", &["203.0.113.9, "], "10.1.1.1"),
        ("10.1.1.1", &["203.0.113.9, \"10.2.2.2"], "10.1.1.1"),
        ("10.1.1.1", &["203.0.113.9, ñ"], "10.1.1.1"),
    ];
    for (peer, lines, client) in cases {
        let found = proxies.client(ip(peer), &headers("x-forwarded-for", lines));
        assert_eq!(found, ip(client), "{peer} says {lines:?}");
    }
    let other = headers("forwarded", &["for=203.0.113.9"]);
    assert_eq!(
        proxies.client(ip("10.1.1.1"), &other),
        ip("10.1.1.1"),
        "one field is believed"
    );
}

/// RFC 7239 §4, §6, §7.
#[test]
fn forwarded_is_read_in_all_of_its_forms() {
    let proxies = TrustedProxies::forwarded(OURS).unwrap();
    let cases: [(&[&str], &str); 12] = [
        (&["for=203.0.113.9"], "203.0.113.9"),
        (
            &["For=\"203.0.113.9:4711\";proto=https;by=10.1.1.1"],
            "203.0.113.9",
        ),
        (
            &["proto=http; for=\"[2001:db8:cafe::17]:4711\""],
            "2001:db8:cafe::17",
        ),
        (
            &["for=1.1.1.1, for=203.0.113.9, for=10.2.2.2"],
            "203.0.113.9",
        ),
        (&["for=1.1.1.1", "for=203.0.113.9"], "203.0.113.9"),
        (
            &["for=1.1.1.1, for=\"_hidden, for=9.9.9.9\", for=10.2.2.2"],
            "10.2.2.2",
        ),
        (&["for=1.1.1.1;host=\"a\\\",b\", for=10.2.2.2"], "1.1.1.1"),
        (&["for=203.0.113.9, for=unknown"], "10.1.1.1"),
        (&["for=203.0.113.9, for=_mystery"], "10.1.1.1"),
        (&["for=203.0.113.9, by=10.1.1.1"], "10.1.1.1"),
        (&["for=203.0.113.9;for=1.1.1.1"], "10.1.1.1"),
        (&["203.0.113.9"], "10.1.1.1"),
    ];
    for (lines, client) in cases {
        let found = proxies.client(ip("10.1.1.1"), &headers("forwarded", lines));
        assert_eq!(found, ip(client), "{lines:?}");
    }
}

#[test]
fn a_field_without_end_is_read_only_so_far() {
    let proxies = TrustedProxies::x_forwarded_for(OURS).unwrap();
    let line = format!("203.0.113.9{}", ", 10.2.2.2".repeat(MAX_FORWARDED));
    let found = proxies.client(ip("10.1.1.1"), &headers("x-forwarded-for", &[&line]));
    assert_eq!(found, ip("10.2.2.2"));
}

#[test]
fn who_would_trust_everybody_or_nobody_is_told_so() {
    for network in ["0.0.0.0/0", "::/0", "10.0.0.0/33", "proxy.internal", ""] {
        let refused = TrustedProxies::x_forwarded_for([network]).unwrap_err();
        assert_eq!(refused.setting(), "trusted_proxies", "{network}");
    }
}

fn count(key: &CallerKey, requests: impl IntoIterator<Item = Request<()>>) -> usize {
    use std::hash::{BuildHasher, RandomState};
    let hasher = RandomState::new();
    let keys = requests.into_iter().map(|request| key.of(&request));
    let hashes: HashSet<_> = keys
        .map(|key| key.map(|key| hasher.hash_one(key)))
        .collect();
    hashes.len()
}

fn from(peer: &str) -> Request<()> {
    let mut request = Request::new(());
    let peer = PeerAddress(std::net::SocketAddr::new(ip(peer), 4711));
    request.extensions_mut().insert(peer);
    request
}

#[test]
fn callers_are_told_apart_by_what_the_key_says() {
    let address = CallerKey::address(TrustedProxies::none());
    assert_eq!(
        count(
            &address,
            [
                from("192.0.2.7"),
                from("192.0.2.8"),
                from("::ffff:192.0.2.7")
            ]
        ),
        2
    );
    let same = [
        from("2001:db8::1"),
        from("2001:db8::ffff:1"),
        from("2001:db8:0:1::1"),
    ];
    assert_eq!(count(&address, same), 2, "a /64 is one caller");
    assert!(address.of(&Request::new(())).is_none());

    let named = |name: Option<&str>| {
        let mut request = from("192.0.2.7");
        if let Some(name) = name {
            request.extensions_mut().insert(Principal::new(name));
        }
        request
    };
    let who = [
        named(Some("a")),
        named(Some("b")),
        named(Some("a")),
        named(None),
    ];
    assert_eq!(count(&CallerKey::principal(), who), 3);

    let key = CallerKey::header("x-api-key".parse().unwrap());
    let keyed = |key: &str| {
        Request::builder()
            .header("x-api-key", key)
            .body(())
            .unwrap()
    };
    assert_eq!(count(&key, [keyed("a"), keyed("b"), keyed("a")]), 2);
    assert_eq!(
        count(
            &CallerKey::nothing(),
            [from("192.0.2.7"), from("192.0.2.8")]
        ),
        1
    );
    assert!(!format!("{:?}", Principal::new("ana")).contains("ana"));
}

#[cfg(feature = "axum")]
#[test]
fn axums_connection_says_its_address() {
    let mut request = Request::new(());
    let peer: std::net::SocketAddr = "192.0.2.7:80".parse().unwrap();
    request
        .extensions_mut()
        .insert(axum::extract::ConnectInfo(peer));
    assert_eq!(peer_address(request.extensions()), Some(ip("192.0.2.7")));
}
