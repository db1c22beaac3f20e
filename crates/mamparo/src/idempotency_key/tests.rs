//! One key per operation, as the peer sees it.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use mamparo_core::clock::WallClock;
use mamparo_core::http::Http;
use mamparo_core::{BoxError, CallContext, Event, LayerKind, Observer, OperationId, What, fnv};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Door, Script, Step};
use tower::{Layer, Service, ServiceExt};
use uuid::Uuid;

use super::state::short_hash;
use super::*;
use crate::replay::ReplayBody;
use crate::retry::{RetryLayer, RetryPolicy};

const KEY: &str = "idempotency-key";

/// What a transport would see: the headers, and the context.
type Seen = (HeaderMap, CallContext);
type Peer<B> = Script<Request<B>, Response<ScriptedBody>, Seen>;

fn peer<B: Send + 'static>(statuses: &[u16]) -> Peer<B> {
    let answer = |status: &u16| {
        let answer = Response::builder().status(*status);
        Step::answer(answer.body(ScriptedBody::empty()).unwrap())
    };
    let note = |request: &Request<B>| (request.headers().clone(), CallContext::current());
    Script::noting(note, statuses.iter().map(answer))
}

fn request(method: Method, key: Option<&str>) -> Request<()> {
    let mut request = Request::builder().method(method).uri("/").body(()).unwrap();
    if let Some(key) = key {
        let value = HeaderValue::from_bytes(key.as_bytes()).unwrap();
        request.headers_mut().insert(KEY, value);
    }
    request
}

fn layer(policy: KeyBuilder) -> IdempotencyKeyLayer {
    IdempotencyKeyLayer::new(policy.build().unwrap()).dependency("psp")
}

/// Sends one request through the layer, and returns what the peer saw.
async fn sent(layer: &IdempotencyKeyLayer, request: Request<()>) -> Seen {
    let peer = peer(&[200]);
    layer.layer(peer.clone()).oneshot(request).await.unwrap();
    peer.requests().remove(0)
}

fn default() -> IdempotencyKeyLayer {
    layer(KeyPolicy::builder())
}

#[derive(Debug)]
struct At(u64);

impl WallClock for At {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.0)
    }
}

/// The key without its quotes.
fn unquoted(value: &HeaderValue) -> &str {
    let text = value.to_str().unwrap();
    text.strip_prefix('"').unwrap().strip_suffix('"').unwrap()
}

/// IK-01, RFC 9562 §5.7.
#[tokio::test]
async fn an_unsafe_request_gets_a_version_7_uuid_in_quotes() {
    let time = 1_700_000_000_123;
    let (headers, _) = sent(
        &layer(KeyPolicy::builder().wall_clock(At(time))),
        request(Method::POST, None),
    )
    .await;
    let key = Uuid::parse_str(unquoted(&headers[KEY])).unwrap();
    assert_eq!(key.get_version_num(), 7);
    let (seconds, nanos) = key.get_timestamp().unwrap().to_unix();
    assert_eq!(seconds * 1_000 + u64::from(nanos) / 1_000_000, time);
}

/// IK-17: most servers take the raw value.
#[tokio::test]
async fn the_bare_form_has_no_quotes() {
    let bare = layer(KeyPolicy::builder().form(KeyForm::Bare));
    let (headers, _) = sent(&bare, request(Method::POST, None)).await;
    assert!(Uuid::parse_str(headers[KEY].to_str().unwrap()).is_ok());
}

/// A clock before 1970 is no reason to fail a payment.
#[tokio::test]
async fn a_clock_that_is_wrong_by_decades_still_gives_keys() {
    #[derive(Debug)]
    struct Wrong;
    impl WallClock for Wrong {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH - Duration::from_secs(1)
        }
    }
    let wrong = layer(KeyPolicy::builder().wall_clock(Wrong));
    let (first, _) = sent(&wrong, request(Method::POST, None)).await;
    let (second, _) = sent(&wrong, request(Method::POST, None)).await;
    assert_ne!(first[KEY], second[KEY]);
}

/// Row P-B9: outside the retry, so that every attempt has it; 409 is tried again with it, and 422 is not.
#[tokio::test(start_paused = true)]
async fn all_attempts_of_an_operation_have_one_key_and_two_operations_have_two() {
    let mut keys = Vec::new();
    for _ in 0..2 {
        let peer = peer::<ReplayBody<ScriptedBody>>(&[503, 409, 422]);
        let service = (default(), RetryLayer::http(RetryPolicy::default())).layer(peer.clone());
        let request = Request::post("/")
            .body(ScriptedBody::new("charge"))
            .unwrap();
        assert_eq!(service.oneshot(request).await.unwrap().status(), 422);
        let seen = peer.requests();
        assert_eq!(seen.len(), 3);
        assert!(
            seen.iter()
                .all(|(headers, _)| headers[KEY] == seen[0].0[KEY])
        );
        keys.push(seen[0].0[KEY].clone());
    }
    assert_ne!(keys[0], keys[1]);
}

/// Row P-B9, IK-02 to IK-15: valid or not, it is the caller's.
#[tokio::test]
async fn the_callers_own_key_is_never_touched() {
    let own = [
        "\"mine\"",
        "mine",
        "8e03978e",
        "\"",
        "",
        "\"a\";x=1",
        "\u{f1}",
        "a b",
    ];
    for method in [Method::POST, Method::GET] {
        for key in own {
            let heard = Heard::default();
            let layer = default().observer(Arc::new(heard.clone()));
            let (headers, context) = sent(&layer, request(method.clone(), Some(key))).await;
            assert_eq!(headers[KEY].as_bytes(), key.as_bytes());
            assert_eq!(context.key_hash(), Some(short_hash(&headers[KEY])));
            assert_eq!(heard.all(), [], "no key was added");
        }
    }
}

#[tokio::test]
async fn only_the_named_methods_get_a_key() {
    let standard = [
        Method::GET,
        Method::PUT,
        Method::DELETE,
        Method::HEAD,
        Method::OPTIONS,
    ];
    for method in standard {
        let (headers, context) = sent(&default(), request(method, None)).await;
        assert!(headers.is_empty() && context.operation().is_none());
    }
    let (headers, _) = sent(&default(), request(Method::PATCH, None)).await;
    assert_eq!(headers.len(), 1);
    let put = layer(KeyPolicy::builder().methods([Method::PUT]));
    assert_eq!(sent(&put, request(Method::PUT, None)).await.0.len(), 1);
    assert_eq!(sent(&put, request(Method::POST, None)).await.0.len(), 0);
}

#[tokio::test]
async fn a_dependency_that_honours_no_key_gets_none() {
    let off = IdempotencyKeyLayer::new(KeyPolicy::off());
    let (headers, context) = sent(&off, request(Method::POST, None)).await;
    assert!(headers.is_empty() && context.key_hash().is_none());
    let (headers, _) = sent(&off, request(Method::POST, Some("mine"))).await;
    assert_eq!(headers[KEY], "mine");
}

/// IK-16: and the retry, told of the name too, sends such a request again.
#[tokio::test(start_paused = true)]
async fn the_headers_name_is_the_dependencys() {
    let name = HeaderName::from_static("paypal-request-id");
    let http = Http::builder().key_header(name.clone()).build().unwrap();
    let peer = peer::<ReplayBody<ScriptedBody>>(&[503, 200]);
    let key = layer(KeyPolicy::builder().header(name.clone()));
    let service = (key, RetryLayer::new(RetryPolicy::default(), http)).layer(peer.clone());
    let request = Request::post("/").body(ScriptedBody::empty()).unwrap();
    assert_eq!(service.oneshot(request).await.unwrap().status(), 200);
    let seen = peer.requests();
    assert!(seen.len() == 2 && seen[0].0[&name] == seen[1].0[&name]);
    assert!(!seen[0].0.contains_key(KEY));
}

/// The hash of an event, and that of its context.
type Hashes = (NonZeroU64, Option<NonZeroU64>);

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<Hashes>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let What::KeyAdded { hash } = event.what else {
            panic!("{:?}", event.what)
        };
        let heard = (hash, event.context.key_hash());
        self.0.lock().unwrap().push(heard);
    }
}

impl Heard {
    fn all(&self) -> Vec<Hashes> {
        self.0.lock().unwrap().clone()
    }
}

/// The key itself is a secret: who has it can have somebody else's answer.
#[tokio::test]
async fn a_short_hash_is_told_and_the_key_is_not() {
    let heard = Heard::default();
    let layer = default().observer(Arc::new(heard.clone()));
    let (headers, context) = sent(&layer, request(Method::POST, None)).await;
    let key = unquoted(&headers[KEY]);
    let hash = NonZeroU64::new(fnv::hash(key.as_bytes())).unwrap();
    assert_eq!(heard.all(), [(hash, Some(hash))]);
    assert_eq!(context.key_hash(), Some(hash));
    assert!(!format!("{headers:?} {context:?}").contains(key));
}

/// IK-05: a proxy that puts a key in quotes does not make it another.
#[test]
fn a_key_has_the_same_hash_with_and_without_quotes() {
    let hash = |text: &'static str| short_hash(&HeaderValue::from_static(text)).get();
    assert_eq!(hash("\"a\""), fnv::hash(b"a"));
    assert_eq!((hash("a"), hash(" \"a\" ")), (hash("\"a\""), hash("\"a\"")));
    assert_ne!(hash("ABC"), hash("abc"));
    assert_eq!(hash("\""), fnv::hash(b"\""));
}

/// In `call` and at every poll, and in the operation that is under way.
#[tokio::test(start_paused = true)]
async fn the_context_inside_has_the_hash_and_belongs_to_the_operation() {
    fn seen() -> (Option<NonZeroU64>, Option<OperationId>) {
        let context = CallContext::current();
        (context.key_hash(), context.operation())
    }
    let inner = tower::service_fn(|_: Request<()>| {
        let in_call = seen();
        async move {
            let first = seen();
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_eq!((in_call, first), (seen(), seen()));
            Ok::<_, BoxError>(in_call)
        }
    });
    let mut outer = CallContext::join(LayerKind::Deadline, "psp".into());
    let mut call = std::pin::pin!(default().layer(inner).oneshot(request(Method::POST, None)));
    let call = std::future::poll_fn(|cx| outer.enter(|| call.as_mut().poll(cx)));
    let (hash, operation) = call.await.unwrap();
    assert!(hash.is_some() && operation == outer.operation());
    assert_eq!(CallContext::current().key_hash(), None);
    let (_, alone) = sent(&default(), request(Method::POST, None)).await;
    assert!(
        alone.operation().is_some(),
        "the outermost layer begins the operation"
    );
}

/// A handler that calls somebody else has another operation, and another key.
#[tokio::test]
async fn a_nested_operation_does_not_inherit_the_key() {
    let mut outer = CallContext::join(LayerKind::IdempotencyKey, "psp".into())
        .with_key_hash(NonZeroU64::new(7));
    let nested = outer.enter(|| CallContext::join(LayerKind::IdempotencyKey, "psp".into()));
    assert_eq!(nested.key_hash(), None);
}

#[tokio::test]
async fn a_key_can_come_from_the_request_itself() {
    #[derive(Clone)]
    struct Order(u64);
    let keys = layer(KeyPolicy::builder().keys(|head| {
        let order = head.extensions.get::<Order>()?;
        HeaderValue::try_from(format!("\"order-{}\"", order.0)).ok()
    }));
    let mut order = request(Method::POST, None);
    order.extensions_mut().insert(Order(7));
    let (headers, context) = sent(&keys, order).await;
    assert_eq!(headers[KEY], "\"order-7\"");
    assert_eq!(context.key_hash(), NonZeroU64::new(fnv::hash(b"order-7")));
    let (headers, _) = sent(&keys, request(Method::POST, None)).await;
    assert!(
        Uuid::parse_str(unquoted(&headers[KEY])).is_ok(),
        "or else it is random"
    );
}

#[test]
fn it_is_as_ready_as_what_is_inside() {
    let door = Door::closed();
    let mut service = default().layer(door.before(peer::<()>(&[])));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_pending());
    door.open();
    assert!(matches!(service.poll_ready(&mut cx), Poll::Ready(Ok(()))));
}

/// Rows C20 and J11.
#[test]
fn a_list_of_no_methods_or_of_too_many_is_refused_by_name() {
    let refused = |count| {
        let methods = std::iter::repeat_n(Method::POST, count);
        KeyPolicy::builder().methods(methods).build().unwrap_err()
    };
    assert_eq!((refused(0).setting(), refused(0).value()), ("methods", "0"));
    assert_eq!(refused(MAX_METHODS + 1).setting(), "methods");
}

/// Without a key it would be unsafe to send again, and nobody would know.
#[tokio::test]
async fn a_request_that_has_no_place_for_a_key_fails_and_is_not_sent() {
    let mut full = request(Method::POST, None);
    for count in 0.. {
        let name = HeaderName::try_from(format!("x-{count}")).unwrap();
        let value = HeaderValue::from_static("1");
        if full.headers_mut().try_insert(name, value).is_err() {
            break;
        }
    }
    let peer = peer(&[]);
    assert!(default().layer(peer.clone()).oneshot(full).await.is_err());
    assert_eq!(peer.started(), 0);
}
