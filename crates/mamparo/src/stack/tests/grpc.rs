//! A stack under a service config of gRPC: who owns which method's resends, and how long it may take.

use http::Request;
use mamparo_core::grpc::{Code, Grpc};
use mamparo_core::{BoxError, Rejection, clock};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Step, Strict};
use tower::{Layer, ServiceExt};
use tower_layer::Identity;

use crate::breaker::BreakerPolicy;
use crate::grpc::tests::cast::{self, *};
use crate::grpc::{HedgePlan, MethodConfig, RetryPlan, ServiceConfig};
use crate::hedge::HedgePolicy;
use crate::peek::PeekLayer;
use crate::stack::Stack;

fn request(method: &str) -> Request<ScriptedBody> {
    let request = Request::post(format!("http://catalog/shop.Catalog/{method}"));
    request.body(ScriptedBody::new("question")).unwrap()
}

fn config() -> ServiceConfig {
    let codes = [Code::Unavailable].into_iter().collect();
    let retry = RetryPlan::new(4, backoff(), codes).unwrap();
    let hedge = HedgePlan::new(3, 50 * MS, codes).unwrap();
    let config = ServiceConfig::builder()
        .method(
            "shop.Catalog",
            "Retried",
            MethodConfig::new().retried(retry),
        )
        .method("shop.Catalog", "Hedged", MethodConfig::new().hedged(hedge))
        .method("shop.Catalog", "Once", MethodConfig::new().sent_once())
        .method(
            "shop.Catalog",
            "Short",
            MethodConfig::new().within(300 * MS),
        );
    config.build().unwrap()
}

/// How often each method is sent to a peer that never can.
async fn sends(stack: Stack<Identity, Identity, Identity, Grpc>) -> Vec<usize> {
    let mut sends = Vec::new();
    for method in ["Retried", "Hedged", "Once", "Other"] {
        let peer = always(Code::Unavailable);
        let service = stack.layer(Strict::new(peer.clone()));
        service.oneshot(request(method)).await.unwrap();
        sends.push(peer.started());
    }
    sends
}

/// Retried or hedged by what is said of the method, and never both.
#[tokio::test(start_paused = true)]
async fn a_methods_plan_chooses_the_owner_of_its_resends() {
    let stack = || Stack::grpc("catalog").breaker(BreakerPolicy::off());
    assert_eq!(sends(stack()).await, [3, 3, 3, 3]);
    assert_eq!(sends(stack().service_config(&config())).await, [4, 3, 1, 3]);
    // The stack's own owner has the rest, whichever was set first.
    let hedge = HedgePolicy::builder().build().unwrap();
    let hedging = stack().service_config(&config()).hedge(hedge);
    assert_eq!(sends(hedging).await, [4, 3, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_hedged_methods_attempts_run_side_by_side() {
    let peer = peer([
        Step::hang(),
        Step::hang(),
        Step::answer(ok()).after(10 * MS),
    ]);
    let stack = Stack::grpc("catalog").service_config(&config());
    let service = stack.layer(Strict::new(peer.clone()));
    service.oneshot(request("Hedged")).await.unwrap();
    assert_eq!(cast::sends(&peer), [0, 50, 100]);
    assert_eq!(peer.max_running(), 3);
}

/// DL-03: the shorter of what the caller has, the policy, and the method's timeout.
#[tokio::test(start_paused = true)]
async fn a_methods_timeout_bounds_the_whole_call_and_goes_out_with_it() {
    let peer = peer([Step::hang()]);
    let stack = Stack::grpc("catalog").service_config(&config());
    let start = clock::now();
    let error: BoxError = match stack.layer(peer.clone()).oneshot(request("Short")).await {
        Ok(_) => panic!("an answer"),
        Err(error) => error,
    };
    assert!(Rejection::of(&*error).is_some_and(Rejection::is_deadline_exceeded));
    assert!(clock::now() - start <= 300 * MS);
    let sent = &peer.requests()[0].headers["grpc-timeout"];
    assert!(sent.to_str().unwrap() <= "285000u", "{sent:?}");
}

#[test]
fn the_worst_case_is_that_of_the_longest_plan() {
    let worst = Stack::grpc("catalog")
        .service_config(&config())
        .worst_case();
    assert_eq!(worst.attempts, 4);
}

/// P-B7.
#[tokio::test(start_paused = true)]
async fn a_late_failure_is_sent_again_where_the_stack_peeks() {
    let late = || Step::answer(streamed(Frames::new().trailer("grpc-status", "14")));
    for (layer, sends) in [(PeekLayer::off(), 1), (PeekLayer::new(), 2)] {
        let peer = peer([late(), Step::answer(ok())]);
        let stack = Stack::grpc("catalog").peek(layer);
        let service = stack.layer(Strict::new(peer.clone()));
        service.oneshot(request("Other")).await.unwrap();
        assert_eq!(peer.started(), sends);
    }
    let stack = Stack::grpc("catalog").peek(PeekLayer::new());
    assert!(stack.to_string().contains("peek"), "{stack}");
}
