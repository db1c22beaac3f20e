//! What an [`EventStore`](crate::events::EventStore) promises.

use std::sync::Arc;
use std::time::Duration;

use super::EventBackend;
use super::support::{LONG, claim, event, ids, later, settle};
use crate::events::{Event, Settlement};

/// A rollback leaves nothing, and a commit all of it.
pub async fn an_event_is_there_exactly_when_its_transaction_commits(
    backend: Arc<dyn EventBackend>,
) {
    let store = backend.store();
    backend.put(vec![event("rolled-back", None)], false).await;
    backend
        .put(vec![event("a", None), event("b", None)], true)
        .await;
    let (_, claimed) = claim(&*store, 10, LONG).await;
    assert_eq!(ids(&claimed), ["a", "b"]);
}

/// Ids, keys, headers and bytes of any kind.
pub async fn an_event_comes_back_whole(backend: Arc<dyn EventBackend>) {
    let whole = Event::builder("order-7/placed")
        .key("clé d'ordre")
        .to("", "queue")
        .content_type("application/json")
        .header(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        .header("tracestate", "a=\"b\"")
        .payload((0..=255).collect::<Vec<u8>>())
        .build()
        .unwrap();
    let bare = Event::builder("bare").build().unwrap();
    backend.put(vec![whole.clone(), bare.clone()], true).await;
    let claimed = backend.store().claim(10, LONG).await.unwrap();
    let events: Vec<Event> = claimed
        .events
        .into_iter()
        .map(|event| event.event.unwrap())
        .collect();
    assert_eq!(events, [whole, bare]);
}

/// While one has the first of a key, nobody has a later one.
pub async fn what_is_claimed_keeps_its_key_and_no_other(backend: Arc<dyn EventBackend>) {
    let store = backend.store();
    let all = [
        ("a1", Some("a")),
        ("a2", Some("a")),
        ("x", None),
        ("b1", Some("b")),
    ];
    let all = all.map(|(id, key)| event(id, key));
    backend.put(all.to_vec(), true).await;
    let (first, claimed) = claim(&*store, 1, LONG).await;
    assert_eq!(ids(&claimed), ["a1"]);
    let (_, others) = claim(&*store, 10, LONG).await;
    assert_eq!(ids(&others), ["x", "b1"]);
    assert!(claim(&*store, 10, LONG).await.1.is_empty());
    assert_eq!(
        settle(&*store, first, claimed[0].0, Settlement::Published).await,
        0
    );
    let (_, next) = claim(&*store, 10, LONG).await;
    assert_eq!(ids(&next), ["a2"]);
}

/// More of one key than one claim takes come in their order.
pub async fn a_claim_takes_of_a_key_what_comes_first(backend: Arc<dyn EventBackend>) {
    let store = backend.store();
    let all: Vec<String> = (0..100).map(|number| format!("a/{number}")).collect();
    backend
        .put(all.iter().map(|id| event(id, Some("a"))).collect(), true)
        .await;
    let mut came = Vec::new();
    while came.len() < all.len() {
        let (id, claimed) = claim(&*store, 40, LONG).await;
        assert!(!claimed.is_empty() && claimed.len() <= 40);
        assert!(
            claim(&*store, 40, LONG).await.1.is_empty(),
            "the key is held"
        );
        let published = claimed
            .iter()
            .map(|(number, _)| (*number, Settlement::Published));
        assert_eq!(store.settle(id, published.collect()).await.unwrap(), 0);
        came.extend(claimed.into_iter().map(|(_, id)| id));
    }
    assert_eq!(came, all);
}

/// However many wait behind the first of a key: those of other keys and of none are found, oldest first as far as it looks.
pub async fn a_key_with_a_long_queue_hides_no_other(backend: Arc<dyn EventBackend>) {
    let store = backend.store();
    let mut all: Vec<Event> = (0..200)
        .map(|number| event(format!("hot/{number}"), Some("hot")))
        .collect();
    all.extend((0..30).map(|number| event(format!("single/{number}"), None)));
    all.extend((0..30).map(|number| event(format!("other/{number}"), Some(&format!("k{number}")))));
    let count = all.len();
    backend.put(all, true).await;
    let mut came = Vec::new();
    let (hot, first) = claim(&*store, 5, LONG).await;
    assert_eq!(first[0].1, "hot/0");
    came.extend(first.iter().map(|(_, id)| id.clone()));
    for _ in 0..11 {
        let (_, others) = claim(&*store, 5, LONG).await;
        assert!(others.iter().all(|(_, id)| !id.starts_with("hot")));
        assert_eq!(others.len(), 5);
        came.extend(others.into_iter().map(|(_, id)| id));
    }
    let published = first
        .iter()
        .filter(|(_, id)| id.starts_with("hot"))
        .map(|(number, _)| (*number, Settlement::Published));
    assert_eq!(store.settle(hot, published.collect()).await.unwrap(), 0);
    loop {
        let (id, claimed) = claim(&*store, 50, LONG).await;
        if claimed.is_empty() {
            break;
        }
        let published = claimed
            .iter()
            .map(|(number, _)| (*number, Settlement::Published));
        assert_eq!(store.settle(id, published.collect()).await.unwrap(), 0);
        came.extend(claimed.into_iter().map(|(_, id)| id));
    }
    came.sort();
    came.dedup();
    assert_eq!(came.len(), count);
}

/// And its key waits behind it.
pub async fn a_row_that_makes_no_sense_is_told_alone(backend: Arc<dyn EventBackend>) {
    let both = [event("broken", Some("a")), event("sound", None)];
    backend.put(both.to_vec(), true).await;
    backend.tear("broken").await;
    let claimed = backend.store().claim(10, LONG).await.unwrap().events;
    let why = claimed[0].event.as_ref().unwrap_err().as_str();
    assert!(why.starts_with("it can't be read: head = "), "{why}");
    assert_eq!(claimed[0].key.as_deref(), Some("a"));
    assert!(claimed[1].event.is_ok());
}

/// After its lease another has them, and the first changes nothing any more.
pub async fn whoever_lost_the_lease_settles_nothing(backend: Arc<dyn EventBackend>) {
    let store = backend.store();
    backend
        .put(vec![event("a1", Some("a")), event("a2", Some("a"))], true)
        .await;
    let (late, before) = claim(&*store, 10, Duration::from_millis(100)).await;
    assert_eq!(ids(&before), ["a1", "a2"]);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (now, claimed) = claim(&*store, 10, LONG).await;
    assert_eq!(ids(&claimed), ["a1", "a2"]);
    for settlement in [
        Settlement::Published,
        later(Duration::ZERO),
        Settlement::Parked("no".into()),
    ] {
        assert_eq!(settle(&*store, late, before[0].0, settlement).await, 1);
    }
    let both = claimed
        .iter()
        .map(|(number, _)| (*number, Settlement::Published));
    assert_eq!(store.settle(now, both.collect()).await.unwrap(), 0);
    assert_eq!(store.backlog().await.unwrap().waiting, 0);
}

/// And what has its key waits with it.
pub async fn what_is_put_off_comes_after_its_wait(backend: Arc<dyn EventBackend>) {
    let store = backend.store();
    backend
        .put(vec![event("a1", Some("a")), event("a2", Some("a"))], true)
        .await;
    let (id, claimed) = claim(&*store, 10, LONG).await;
    let wait = Duration::from_millis(300);
    let failed = Settlement::Later { wait, failed: true };
    let settled = vec![
        (claimed[0].0, failed),
        (claimed[1].0, later(Duration::ZERO)),
    ];
    assert_eq!(store.settle(id, settled).await.unwrap(), 0);
    assert!(claim(&*store, 10, LONG).await.1.is_empty());
    tokio::time::sleep(wait).await;
    let claimed = store.claim(10, LONG).await.unwrap().events;
    assert_eq!([claimed[0].failures, claimed[1].failures], [1, 0]);
}

/// Until a person gives it back or removes it.
pub async fn what_is_parked_holds_its_key_and_no_other(backend: Arc<dyn EventBackend>) {
    let store = backend.store();
    let all = [
        ("a1", Some("a")),
        ("a2", Some("a")),
        ("b1", Some("b")),
        ("x", None),
    ];
    backend
        .put(all.map(|(id, key)| event(id, key)).to_vec(), true)
        .await;
    let (id, claimed) = claim(&*store, 10, LONG).await;
    let settled = claimed.iter().map(|(number, id)| match id.as_str() {
        "a1" | "x" => (*number, Settlement::Parked("no queue takes it".into())),
        _ => (*number, later(Duration::ZERO)),
    });
    store.settle(id, settled.collect()).await.unwrap();
    let (_, others) = claim(&*store, 10, LONG).await;
    assert_eq!(ids(&others), ["b1"]);
    let backlog = store.backlog().await.unwrap();
    assert_eq!((backlog.waiting, backlog.parked), (2, 2));
    assert!(backlog.oldest.is_some());

    let parked = store.parked(0, 10).await.unwrap();
    assert_eq!(parked.len(), 2);
    assert_eq!(parked[0].reason.as_str(), "no queue takes it");
    assert_eq!(parked[0].event.as_ref().unwrap().id(), "a1");
    assert_eq!(store.parked(parked[0].number, 10).await.unwrap().len(), 1);
    let waits = others[0].0;
    assert_eq!(
        store.discard(vec![parked[1].number, waits]).await.unwrap(),
        1,
        "only what is parked"
    );
    assert_eq!(
        store.unpark(vec![parked[0].number, waits]).await.unwrap(),
        1
    );
    let (_, back) = claim(&*store, 10, LONG).await;
    assert_eq!(ids(&back), ["a1", "a2"]);
    assert!(store.parked(0, 10).await.unwrap().is_empty());
}

/// In the order of their numbers, also what can't be read; each is given back or removed once.
pub async fn what_is_parked_is_listed_in_pages_and_goes_once(backend: Arc<dyn EventBackend>) {
    let store = backend.store();
    let all = ["a", "b", "c", "d", "e"].map(|id| event(id, None));
    backend.put(all.to_vec(), true).await;
    let (id, claimed) = claim(&*store, 10, LONG).await;
    let parked = claimed
        .iter()
        .map(|(number, id)| (*number, Settlement::Parked(format!("no {id}").into())));
    assert_eq!(store.settle(id, parked.collect()).await.unwrap(), 0);
    backend.tear("c").await;
    let (mut listed, mut last) = (Vec::new(), 0);
    loop {
        let page = store.parked(last, 2).await.unwrap();
        assert!(page.len() <= 2);
        let Some(newest) = page.last() else { break };
        assert!(page[0].number > last && newest.number >= page[0].number);
        last = newest.number;
        listed.extend(page);
    }
    let reasons: Vec<&str> = listed.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(reasons, ["no a", "no b", "no c", "no d", "no e"]);
    assert!(listed.iter().all(|it| it.failures == 1));
    let readable: Vec<bool> = listed.iter().map(|it| it.event.is_ok()).collect();
    assert_eq!(readable, [true, true, false, true, true]);

    let numbers: Vec<i64> = listed.iter().map(|it| it.number).collect();
    let of = |places: [usize; 2]| places.map(|place| numbers[place]).to_vec();
    for left in [2, 0] {
        assert_eq!(store.discard(of([2, 3])).await.unwrap(), left);
        assert_eq!(store.unpark(of([0, 4])).await.unwrap(), left);
    }
    let backlog = store.backlog().await.unwrap();
    assert_eq!((backlog.waiting, backlog.parked), (2, 1));
    let again = store.claim(10, LONG).await.unwrap().events;
    assert!(again.len() == 2 && again.iter().all(|it| it.failures == 0));
}

/// Of what another transaction puts, too.
pub async fn whoever_waits_for_events_is_woken(backend: Arc<dyn EventBackend>) {
    let store = backend.store();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move {
            loop {
                if !store.claim(10, LONG).await.unwrap().events.is_empty() {
                    return;
                }
                store.ready(Duration::from_secs(600)).await;
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    backend.put(vec![event("a", None)], true).await;
    let woken = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    woken.unwrap().unwrap();
}
