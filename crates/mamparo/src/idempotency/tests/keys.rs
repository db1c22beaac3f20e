//! How a key is read.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;
use mamparo_core::http::IDEMPOTENCY_KEY;
use proptest::prelude::*;

use super::super::key::{KeySyntax, read};
use super::super::{IdempotencyPolicy, MAX_KEY_LEN};
use super::cast::{Server, policy, post};

/// Reads a header as both syntaxes do; `Some` is the id of the key.
fn both(raw: &[u8]) -> [Option<super::super::KeyId>; 2] {
    let mut headers = HeaderMap::new();
    headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_bytes(raw).unwrap());
    [KeySyntax::Strict, KeySyntax::Lenient].map(|syntax| {
        let key = read(&headers, &IDEMPOTENCY_KEY, syntax, MAX_KEY_LEN);
        key.ok().map(|key| key.unwrap().id("", b""))
    })
}

fn id(key: &str) -> Option<super::super::KeyId> {
    both(format!("\"{key}\"").as_bytes())[0]
}

/// IK-01 to IK-09, IK-11, IK-13 and IK-15: what each raw value is, strictly and leniently.
#[test]
fn each_form_of_a_key_is_read_as_the_table_says() {
    const UUID: &str = "8e03978e-40d5-43e8-bc93-6894a57f9324";
    const LETTER: &str = "ae03978e-40d5-43e8-bc93-6894a57f9324";
    let (uuid, letter) = (id(UUID), id(LETTER));
    let escaped = both(br#""a\"b""#)[0];
    let table: &[(&[u8], _, _)] = &[
        (br#""8e03978e-40d5-43e8-bc93-6894a57f9324""#, uuid, uuid), // IK-01
        (UUID.as_bytes(), None, uuid),                              // IK-02
        (LETTER.as_bytes(), None, letter),                          // IK-03
        (b"KG5LxwFBepaKHyUD", None, id("KG5LxwFBepaKHyUD")),        // IK-04
        (b"a", None, id("a")),                                      // IK-05
        (br#""""#, None, None),                                     // IK-06
        (b"", None, None),                                          // IK-07
        (br#" "a" "#, id("a"), id("a")),                            // IK-08
        (br#""a";x=1"#, id("a"), id("a")),                          // IK-09
        (br#""a\"b""#, escaped, escaped),                           // IK-11
        (br#""a\nb""#, None, None),                                 // IK-11
        (br#""a\\b""#, both(br#""a\\b""#)[0], both(br#""a\\b""#)[0]),
        ("clé".as_bytes(), None, None),     // IK-13
        ("\"clé\"".as_bytes(), None, None), // IK-13
        (b"a\tb", None, None),              // IK-13
        (b"\"a\tb\"", None, None),          // IK-13
        (b"ABC", None, id("ABC")),          // IK-15
        (br#""a"#, None, None),
        (br#""a";"#, None, None),
        (br#""a", "b""#, None, None),
        (b"a,b", None, None),
        (b"a b", None, None),
        (b"?1", None, id("?1")),
        (b":YWJj:", None, id(":YWJj:")),
    ];
    for (raw, strict, lenient) in table {
        let shown = String::from_utf8_lossy(raw);
        assert_eq!(both(raw), [*strict, *lenient], "{shown}");
    }
    assert!(escaped.is_some() && escaped != id("ab"));
    assert_ne!(id("ABC"), id("abc"), "IK-15: bytes are compared");
}

/// IK-14, and lengths up to 1 MB: the bound is in characters of the key, and can be set.
#[test]
fn a_key_of_255_characters_is_read_and_one_of_256_is_not() {
    for (length, fits) in [(1, true), (255, true), (256, false), (1 << 20, false)] {
        let key = "k".repeat(length);
        assert_eq!(both(key.as_bytes())[1].is_some(), fits, "{length} bare");
        assert_eq!(id(&key).is_some(), fits, "{length} quoted");
    }
    // Escapes don't count, parameters don't either.
    assert!(both(format!("\"{}\";a;b", "\\\"".repeat(255)).as_bytes())[0].is_some());
    assert!(policy().longest_key(0).build().is_err());
    assert!(policy().longest_key(1025).build().is_err());
}

#[test]
fn two_lines_are_no_key_even_if_they_are_the_same() {
    let mut headers = HeaderMap::new();
    headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("\"a\""));
    headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("\"a\""));
    assert!(read(&headers, &IDEMPOTENCY_KEY, KeySyntax::Lenient, 255).is_err());
}

#[test]
fn an_id_depends_on_namespace_principal_and_key_and_on_where_each_ends() {
    let mut headers = HeaderMap::new();
    headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("key"));
    let key = read(&headers, &IDEMPOTENCY_KEY, KeySyntax::Lenient, 255);
    let key = key.unwrap().unwrap();
    let ids = [
        key.id("", b""),
        key.id("a", b""),
        key.id("", b"a"),
        key.id("ab", b"c"),
        key.id("a", b"bc"),
    ];
    for (at, one) in ids.iter().enumerate() {
        assert!(!ids[..at].contains(one), "{at}");
    }
    assert_eq!(format!("{key:?}"), "Key", "nobody is shown a key");
}

proptest! {
    /// Whatever is sent is read or refused, and a key that is read bare is the one that is read in quotes.
    #[test]
    fn a_bare_key_and_a_quoted_one_are_one(raw in "[!-~]{1,40}") {
        let [strict, lenient] = both(raw.as_bytes());
        prop_assert!(strict.is_none() || strict == lenient);
        if lenient.is_some() && !raw.starts_with('"') {
            prop_assert_eq!(lenient, id(&raw));
        }
    }

    #[test]
    fn no_bytes_break_the_reader(raw in proptest::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(value) = HeaderValue::from_bytes(&raw) {
            let mut headers = HeaderMap::new();
            headers.insert(IDEMPOTENCY_KEY, value);
            let _any = read(&headers, &IDEMPOTENCY_KEY, KeySyntax::Lenient, 255);
        }
    }
}

/// IK-05: through the layer.
#[tokio::test]
async fn quoted_and_bare_are_one_key() {
    let server = Server::counting(policy());
    server.post("\"a\"", "x").await;
    assert!(server.post("a", "x").await.is_replayed());
    assert!(server.post(" \"a\";v=2", "x").await.is_replayed());
    assert_eq!(server.runs(), 1);
}

/// IK-16.
#[tokio::test]
async fn the_header_has_the_name_that_is_set() {
    let name = HeaderName::from_static("x-idempotency-key");
    let server = Server::counting(policy().header(name).required());
    let refused = server.post("a", "x").await;
    assert_eq!(refused.problem(), "idempotency-key-missing");
    for replayed in [false, true] {
        let request = Request::post("/").header("x-idempotency-key", "a");
        let got = server.send(request.body(Full::default()).unwrap()).await;
        assert_eq!(got.is_replayed(), replayed);
    }
}

/// IV-07.
#[tokio::test]
async fn principals_have_keys_of_their_own_and_nobodys_key_is_refused() {
    let account = |head: &http::request::Parts| {
        let account = head.headers.get("x-account")?;
        Some(account.as_bytes().to_vec())
    };
    let server = Server::counting(IdempotencyPolicy::per_principal(account));
    let of = |account: &str| {
        let mut request = post("k", "x");
        request
            .headers_mut()
            .insert("x-account", account.parse().unwrap());
        request
    };
    assert_eq!(server.send(of("one")).await.body, "run 1: x");
    assert_eq!(server.send(of("other")).await.body, "run 2: x");
    assert_eq!(server.send(of("one")).await.body, "run 1: x");
    let refused = server.post("k", "x").await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.problem(), "idempotency-key-without-owner");
    assert_eq!(server.runs(), 2);
}

/// IV-12, and an other method that is named.
#[tokio::test]
async fn a_key_counts_only_with_the_methods_that_are_named() {
    let server = Server::counting(policy().methods([Method::PUT]));
    for _ in 0..2 {
        assert!(!server.post("k", "x").await.is_replayed());
    }
    for replayed in [false, true] {
        let mut put = post("k", "x");
        *put.method_mut() = Method::PUT;
        assert_eq!(server.send(put).await.is_replayed(), replayed);
    }
    let server = Server::counting(policy());
    for _ in 0..2 {
        let mut get = post("k", "x");
        *get.method_mut() = Method::GET;
        assert!(!server.send(get).await.is_replayed());
    }
}
