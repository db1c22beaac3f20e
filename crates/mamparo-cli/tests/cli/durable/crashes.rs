use std::time::Duration;

use super::engine::Place;
use super::provider::Provider;

const TRANSACTIONS: usize = 60;

/// Rows A dies, B dies: wherever it was, what was begun ends, and the dependency does nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_killed_again_and_again_loses_nothing_and_doubles_nothing() {
    let (provider, url) = Provider::start(1).await;
    let place = Place::new("killed", &url);
    let mut begun = 0;
    for round in 0..6 {
        let engine = place.engine(&[]).await;
        for _ in 0..TRANSACTIONS / 6 {
            assert_eq!(place.submit(&format!("p{begun}")).await.code, 0);
            begun += 1;
        }
        // At another moment of its work each time.
        tokio::time::sleep(Duration::from_millis(37 * round)).await;
        engine.signal("KILL").await;
        assert_eq!(engine.ended().await, None);
    }
    let engine = place.engine(&[]).await;
    place.succeeded(TRANSACTIONS).await;
    engine.signal("TERM").await;
    assert_eq!(engine.ended().await, Some(0));
    let effects = provider.effects();
    assert_eq!(effects.len(), TRANSACTIONS, "{effects:?}");
    assert!(effects.iter().all(|key| key.ends_with("#2")), "{effects:?}");
    assert_eq!(provider.keys().len(), 2 * TRANSACTIONS);
    let status = place.run(&["engine", "status", "--json"]).await.json();
    assert_eq!(status["dead_letters"], 0);
}
