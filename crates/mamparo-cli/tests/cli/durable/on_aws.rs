use super::engine::Place;
use super::provider::Provider;

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_is_sent_again_through_the_services_of_aws() {
    let (provider, url) = Provider::start(1).await;
    let place = Place::on_aws("engine-on-aws", &url).await;
    assert_eq!(place.submit("payment-1").await.code, 0);
    assert_eq!(place.submit("payment-1").await.json()["new"], false);
    let engine = place.engine(&[]).await;
    assert_eq!(place.submit("payment-2").await.code, 0);
    place.succeeded(2).await;
    engine.signal("TERM").await;
    assert_eq!(engine.ended().await, Some(0));
    assert_eq!(provider.effects(), ["payment-1#2", "payment-2#2"]);

    let shown = place
        .run(&["tx", "show", "payment-1", "--json"])
        .await
        .json();
    assert_eq!(
        (&shown["state"], &shown["end"]),
        (&"SUCCEEDED".into(), &"answered".into())
    );
    let status = place.run(&["engine", "status", "--json"]).await.json();
    assert_eq!(
        (
            &status["transactions"][0]["transactions"],
            &status["dead_letters"]
        ),
        (&2.into(), &0.into())
    );
    let dead = place.run(&["dlq", "list", "--json"]).await.json();
    assert_eq!(dead["dead_letters"], serde_json::json!([]));
    let mended = place.run(&["reconcile", "--json"]).await.json();
    assert_eq!(
        (&mended["found"], &mended["failed"]),
        (&0.into(), &0.into())
    );
}
