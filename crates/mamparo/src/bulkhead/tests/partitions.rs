//! Tenants and their shares, as callers see them.

use http::Request;
use mamparo_core::{CallContext, Plain, Tenant};
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, Service, ServiceExt};

use super::super::*;
use super::cast::*;

const ACME: Tenant = Tenant::of("acme");

fn partitions() -> Partitions {
    Partitions::builder()
        .tenant(ACME, Share::percent(50, 100).unwrap())
        .others(Share::percent(0, 25).unwrap())
        .build()
        .unwrap()
}

fn for_tenant(service: &Caller, tenant: Tenant) -> Call<u32> {
    let mut context = CallContext::current().with_tenant(Some(tenant));
    context.enter(|| called(service))
}

#[tokio::test(start_paused = true)]
async fn a_guarantee_stays_free_and_a_burst_ends_whatever_others_do() {
    let layer = plain(sized(8, 0).partitions(partitions()));
    let (service, handle) = (layer.layer(hanging()), layer.handle());
    let admitted = |name: &str| {
        let mut calls: Vec<_> = (0..8)
            .map(|_| for_tenant(&service, Tenant::of(name)))
            .collect();
        calls.retain_mut(|call| poll(call).is_pending());
        calls
    };
    let one = admitted("one");
    assert_eq!(one.len(), 2, "a quarter of eight");
    assert_eq!(handle.in_flight_for(Tenant::of("one")), 2);
    let two = admitted("two");
    assert_eq!(two.len(), 2, "the other half is acme's");
    assert_eq!(admitted("three").len(), 0);
    let acme = admitted("acme");
    assert_eq!((acme.len(), handle.in_flight_for(ACME)), (4, 4));
    drop((one, two));
    let more = admitted("acme");
    assert_eq!(
        more.len(),
        4,
        "it bursts to all that nobody else is guaranteed"
    );
    drop((acme, more));
    assert_eq!((handle.in_flight(), handle.in_flight_for(ACME)), (0, 0));
}

/// Row E2: the next *fitting* waiter is served, even behind one that doesn't fit.
#[tokio::test(start_paused = true)]
async fn who_may_not_have_a_place_does_not_hold_up_who_may() {
    let layer = plain(sized(4, 8).partitions(partitions()));
    let (service, handle) = (layer.layer(hanging()), layer.handle());
    let _other = for_tenant(&service, Tenant::of("one"));
    let mut acme: Vec<_> = (0..3).map(|_| for_tenant(&service, ACME)).collect();
    let mut over_its_burst = for_tenant(&service, Tenant::of("one"));
    let mut fits = for_tenant(&service, ACME);
    assert_eq!((handle.in_flight(), handle.queued()), (4, 2));
    acme.pop();
    assert!(poll(&mut fits).is_pending() && poll(&mut over_its_burst).is_pending());
    assert_eq!((handle.in_flight(), handle.queued()), (4, 1));
    assert_eq!(handle.in_flight_for(ACME), 3);
    drop(over_its_burst);
    assert_eq!(handle.queued(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_tenant_does_not_fill_the_line_either() {
    let layer = plain(sized(4, 8).partitions(partitions()));
    let (service, handle) = (layer.layer(hanging()), layer.handle());
    let mut calls: Vec<_> = (0..20)
        .map(|_| for_tenant(&service, Tenant::of("one")))
        .collect();
    calls.retain_mut(|call| poll(call).is_pending());
    assert_eq!(
        (handle.in_flight(), handle.queued()),
        (1, 2),
        "a quarter of each"
    );
    let mut acme: Vec<_> = (0..20).map(|_| for_tenant(&service, ACME)).collect();
    acme.retain_mut(|call| poll(call).is_pending());
    assert_eq!((handle.in_flight(), handle.queued()), (4, 8));
}

#[tokio::test(start_paused = true)]
async fn shares_follow_the_limit() {
    let layer = plain(sized(4, 0).partitions(partitions()));
    let (service, handle) = (layer.layer(hanging()), layer.handle());
    let one = Tenant::of("one");
    let _held = [for_tenant(&service, one), for_tenant(&service, one)];
    assert_eq!(handle.in_flight_for(one), 1);
    handle.resize(8).unwrap();
    let _more = for_tenant(&service, one);
    assert_eq!(handle.in_flight_for(one), 2);
    handle.resize(1).unwrap();
    assert!(
        poll(&mut for_tenant(&service, ACME)).is_ready(),
        "running <= limit, guarantee or not"
    );
}

#[tokio::test(start_paused = true)]
async fn a_function_finds_the_tenant_in_the_request() {
    let by_header = |request: &Request<()>| {
        let name = request.headers().get("x-tenant")?.to_str().ok()?;
        Some(Tenant::of(name))
    };
    let policy = sized(8, 0).partitions(partitions()).build().unwrap();
    let layer = BulkheadLayer::new(policy, Plain::idempotent()).tenant_by(by_header);
    let peer = Script::<Request<()>, u32, ()>::noting(|_| (), []).otherwise(Step::hang);
    let mut service = layer.layer(peer);
    let mut request = get();
    request
        .headers_mut()
        .insert("x-tenant", "acme".parse().unwrap());
    let _call = service.ready().await.unwrap().call(request);
    let _other = service.call(get());
    assert_eq!(layer.handle().in_flight_for(ACME), 1);
    assert_eq!(layer.handle().in_flight(), 2);
}
