//! The window, asked without a socket, with time turned by hand.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use mamparo_core::{Event, Observer, What};
use proptest::prelude::*;
use serde_json::Value;
use tokio::time::{advance, timeout};
use tower::ServiceExt;

use super::token::Token;
use super::*;
use crate::breaker::BreakerHandle;
use crate::policy::{Format, Policies};

const TOKEN: &str = "Kc3n0Yt4S1q8mPz7Vw5x";

fn policies() -> Policies {
    load(
        "[dependency.catalog]\n[dependency.psp]\nbreaker = { observes = \"operations\" }\n[dependency.search]\nbreaker = \"off\"\n",
    )
}

fn load(document: &str) -> Policies {
    let loader = Policies::loader().text("policies.toml", document, Format::Toml);
    loader.load().unwrap()
}

fn breaker(policies: &Policies) -> BreakerHandle {
    let policy = policies.dependency("catalog").unwrap();
    policy.http().unwrap().breaker_handle().unwrap()
}

async fn get(router: &Router, path: &str) -> Response<Body> {
    let request = Request::get(path).body(Body::empty()).unwrap();
    router.clone().oneshot(request).await.unwrap()
}

async fn post(router: &Router, path: &str, token: Option<&str>) -> Response<Body> {
    let mut request = Request::post(path);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Body::empty()).unwrap();
    router.clone().oneshot(request).await.unwrap()
}

async fn text(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn json(response: Response<Body>) -> Value {
    serde_json::from_str(&text(response).await).unwrap()
}

async fn is_problem(response: Response<Body>, status: u16) {
    assert_eq!(response.status(), status);
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let problem = json(response).await;
    assert_eq!(
        (&problem["type"], &problem["status"]),
        (&"about:blank".into(), &status.into())
    );
    assert!(problem["detail"].is_string() && problem["title"].is_string());
}

/// The next piece of a stream, as text.
async fn next(body: &mut Body) -> Option<String> {
    let frame = body.frame().await?.unwrap();
    let bytes = frame.into_data().unwrap();
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

async fn events(router: &Router) -> Body {
    let response = get(router, "/events").await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let first = next(&mut body).await.unwrap();
    assert!(
        first.starts_with("retry: 3000\n\nevent: snapshot\ndata: {\"version\":1,"),
        "{first}"
    );
    body
}

#[tokio::test]
async fn what_is_read_is_json_of_this_instant() {
    let router = Admin::new(&policies()).router().unwrap();
    for path in ["/", "/dependencies"] {
        let response = get(&router, path).await;
        assert_eq!(response.headers()["cache-control"], "no-store");
        let all = json(response).await;
        assert_eq!(
            all["dependencies"]["psp"]["breakers"]["operations"]["state"],
            "closed"
        );
    }
    let one = json(get(&router, "/dependencies/catalog").await).await;
    assert_eq!(one["breakers"]["attempts"]["state"], "closed");
    let words = text(get(&router, "/dependencies/catalog/policy").await).await;
    assert!(
        words.contains("retry.max_attempts = 3  (default)"),
        "{words}"
    );
    let request = Request::get("/dependencies/catalog/policy").header("accept", "application/json");
    let request = request.body(Body::empty()).unwrap();
    let settings = json(router.clone().oneshot(request).await.unwrap()).await;
    assert_eq!(
        (
            &settings["name"],
            &settings["settings"][0]["origin"]["from"]
        ),
        (&"catalog".into(), &"default".into())
    );
}

#[tokio::test]
async fn what_is_not_there_is_a_problem() {
    let router = Admin::new(&policies()).router().unwrap();
    for path in [
        "/nothing",
        "/dependencies/nobody",
        "/dependencies/%FF",
        "/dependencies/nobody/policy",
        "/health",
    ] {
        is_problem(get(&router, path).await, 404).await;
    }
    is_problem(post(&router, "/dependencies", None).await, 405).await;
}

#[tokio::test]
async fn nothing_can_be_done_without_an_explicit_setting() {
    let policies = policies();
    let router = Admin::new(&policies).router().unwrap();
    let response = post(
        &router,
        "/dependencies/catalog/breaker/force-open",
        Some(TOKEN),
    )
    .await;
    is_problem(response, 404).await;
    assert_eq!(breaker(&policies).state().as_str(), "closed");
}

#[test]
fn a_token_that_could_be_guessed_is_refused_and_never_shown() {
    let long = "x".repeat(MAX_TOKEN + 1);
    for token in [
        "",
        "short",
        "fifteen-letters",
        "has a space in its middle",
        "ñandú-ñandú-ñandú-ñandú",
        &long,
    ] {
        let admin = Admin::new(&policies()).actions(token);
        assert!(token.is_empty() || !format!("{admin:?}").contains(token));
        let refused = admin.router().unwrap_err();
        assert_eq!((refused.setting(), refused.value()), ("token", "(hidden)"));
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let admin = || Admin::new(&policies());
    let refused = |admin: Admin| admin.router().unwrap_err().setting();
    assert_eq!(refused(admin().ready(["nobody"])), "ready");
    assert_eq!(
        refused(admin().actions(TOKEN).actions_only_on(["nobody"])),
        "actions_only_on"
    );
    assert_eq!(refused(admin().actions_only_on(["psp"])), "actions_only_on");
    assert_eq!(refused(admin().max_streams(0)), "max_streams");
    assert_eq!(refused(admin().max_events(usize::MAX)), "max_events");
    assert_eq!(
        refused(admin().snapshot_every(Duration::ZERO)),
        "snapshot_every"
    );
    assert_eq!(refused(admin().keep_alive(Duration::ZERO)), "keep_alive");
    assert_eq!(
        refused(admin().max_stream_time(Duration::ZERO)),
        "max_stream_time"
    );
}

#[tokio::test]
async fn a_breaker_is_forced_by_whoever_has_the_token_and_by_nobody_else() {
    let policies = policies();
    let router = Admin::new(&policies).actions(TOKEN).router().unwrap();
    let path = "/dependencies/catalog/breaker/force-open";
    let missing = post(&router, path, None).await;
    assert_eq!(missing.headers()["www-authenticate"], "Bearer");
    is_problem(missing, 401).await;
    let wrong = post(&router, path, Some("Kc3n0Yt4S1q8mPz7Vw5y")).await;
    assert_eq!(
        wrong.headers()["www-authenticate"],
        "Bearer error=\"invalid_token\""
    );
    is_problem(wrong, 401).await;
    let twice = Request::post(path).header("authorization", format!("Bearer {TOKEN}"));
    let twice = twice
        .header("authorization", format!("Bearer {TOKEN}"))
        .body(Body::empty());
    is_problem(router.clone().oneshot(twice.unwrap()).await.unwrap(), 401).await;
    let basic = Request::post(path).header("authorization", format!("Basic {TOKEN}"));
    is_problem(
        router
            .clone()
            .oneshot(basic.body(Body::empty()).unwrap())
            .await
            .unwrap(),
        401,
    )
    .await;
    assert_eq!(breaker(&policies).state().as_str(), "closed");
}

#[tokio::test]
async fn what_is_done_to_a_breaker_is_answered_and_what_makes_no_sense_is_refused() {
    let policies = policies();
    let router = Admin::new(&policies).actions(TOKEN).router().unwrap();
    let path = "/dependencies/catalog/breaker/force-open";
    let done = post(&router, path, Some(TOKEN)).await;
    assert_eq!(done.status(), 200);
    let done = json(done).await;
    let change = &done["breakers"]["attempts"];
    assert_eq!(
        (&change["from"], &change["to"]),
        (&"closed".into(), &"forced_open".into())
    );
    assert_eq!(breaker(&policies).state().as_str(), "forced_open");
    for (action, status) in [("close", 200), ("close", 409), ("reset", 200)] {
        let path = format!("/dependencies/catalog/breaker/{action}");
        assert_eq!(
            post(&router, &path, Some(TOKEN)).await.status(),
            status,
            "{action}"
        );
        assert_eq!(breaker(&policies).state().as_str(), "closed");
    }
    let operations = post(&router, "/dependencies/psp/breaker/force-open", Some(TOKEN)).await;
    assert_eq!(
        json(operations).await["breakers"]["operations"]["to"],
        "forced_open"
    );

    is_problem(
        post(&router, "/dependencies/nobody/breaker/reset", Some(TOKEN)).await,
        404,
    )
    .await;
    is_problem(
        post(
            &router,
            "/dependencies/catalog/breaker/explode",
            Some(TOKEN),
        )
        .await,
        404,
    )
    .await;
    is_problem(
        post(&router, "/dependencies/search/breaker/reset", Some(TOKEN)).await,
        409,
    )
    .await;
    let read = get(&router, path).await;
    assert_eq!(read.headers()["allow"], "POST");
    is_problem(read, 405).await;
}

#[tokio::test]
async fn actions_are_allowed_on_the_chosen_dependencies_only() {
    let admin = Admin::new(&policies()).actions(TOKEN);
    let router = admin.actions_only_on(["psp"]).router().unwrap();
    let response = post(
        &router,
        "/dependencies/catalog/breaker/force-open",
        Some(TOKEN),
    )
    .await;
    is_problem(response, 403).await;
    let response = post(&router, "/dependencies/psp/breaker/force-open", Some(TOKEN)).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn who_sends_wrong_tokens_is_refused_for_a_while_and_nobody_else() {
    let policies = policies();
    let router = Admin::new(&policies).actions(TOKEN).router().unwrap();
    let from = async |address: [u8; 4], token: &str| {
        let request = Request::post("/dependencies/catalog/breaker/reset");
        let request = request.header("authorization", format!("bearer {token}"));
        let peer = ConnectInfo(SocketAddr::from((address, 4711)));
        let request = request.extension(peer).body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap()
    };
    let (guesser, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    for _ in 0..10 {
        assert_eq!(from(guesser, "not-the-token-at-all").await.status(), 401);
    }
    // The right one, too: who guesses must not learn that it is.
    let refused = from(guesser, TOKEN).await;
    assert_eq!(refused.headers()["retry-after"], "6");
    is_problem(refused, 429).await;
    assert_eq!(from(other, TOKEN).await.status(), 200);
    advance(Duration::from_secs(6)).await;
    assert_eq!(from(guesser, TOKEN).await.status(), 200);
    assert_eq!(from(guesser, "not-the-token-at-all").await.status(), 401);
    assert_eq!(from(guesser, TOKEN).await.status(), 429);
    advance(Duration::from_secs(60)).await;
    for _ in 0..10 {
        assert_eq!(from(guesser, "not-the-token-at-all").await.status(), 401);
    }
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        if let What::BreakerOperated { action, refused } = event.what {
            let dependency = event.context.dependency().as_str();
            let line = format!("{dependency} {action} {}", refused.unwrap_or("done"));
            self.0.lock().unwrap().push(line);
        }
    }
}

#[tokio::test]
async fn every_action_is_reported_and_so_is_what_was_refused() {
    let heard = Arc::new(Heard::default());
    let admin = Admin::new(&policies())
        .actions(TOKEN)
        .actions_only_on(["catalog", "search"]);
    let router = admin.observer(heard.clone()).router().unwrap();
    for (path, token) in [
        ("catalog/breaker/force-open", Some(TOKEN)),
        ("catalog/breaker/close", None),
        ("catalog/breaker/close", Some("Kc3n0Yt4S1q8mPz7Vw5y")),
        ("psp/breaker/reset", Some(TOKEN)),
        ("search/breaker/reset", Some(TOKEN)),
        ("somebody/breaker/explode", Some(TOKEN)),
    ] {
        post(&router, &format!("/dependencies/{path}"), token).await;
    }
    let heard = heard.0.lock().unwrap().join("\n");
    assert_eq!(
        heard,
        "catalog force-open done\ncatalog close unauthorized\ncatalog close unauthorized\npsp reset forbidden\n\
         search reset conflict\n unknown not_found",
    );
}

#[tokio::test]
async fn it_is_ready_unless_a_chosen_dependency_can_not_be_called() {
    let policies = policies();
    let none = Admin::new(&policies).router().unwrap();
    let router = Admin::new(&policies)
        .ready(["catalog", "search"])
        .router()
        .unwrap();
    let ready = get(&router, "/health/ready").await;
    assert_eq!(ready.status(), StatusCode::OK);
    let ready = json(ready).await;
    assert_eq!(
        (&ready["status"], &ready["dependencies"]["search"]["ready"]),
        (&"ready".into(), &true.into())
    );
    assert!(ready["dependencies"].get("psp").is_none());
    breaker(&policies).force_open();
    let not = get(&router, "/health/ready").await;
    assert_eq!(not.status(), StatusCode::SERVICE_UNAVAILABLE);
    let not = json(not).await;
    assert_eq!(
        not["dependencies"]["catalog"]["breakers"]["attempts"],
        "forced_open"
    );
    assert_eq!(
        (&not["status"], &not["dependencies"]["search"]["ready"]),
        (&"not_ready".into(), &true.into())
    );
    assert_eq!(get(&none, "/health/ready").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn nothing_that_is_read_has_the_secrets_of_a_url() {
    let policies =
        load("[dependency.catalog]\nurl = \"http://me:SECRET@catalog:8080/v1?key=SECRET\"\n");
    let router = Admin::new(&policies).actions(TOKEN).router().unwrap();
    for path in [
        "/",
        "/dependencies/catalog",
        "/dependencies/catalog/policy",
        "/health/ready",
    ] {
        for accept in ["*/*", "application/json"] {
            let request = Request::get(path).header("accept", accept);
            let request = request.body(Body::empty()).unwrap();
            let said = text(router.clone().oneshot(request).await.unwrap()).await;
            assert!(!said.contains("SECRET") && !said.contains(TOKEN), "{said}");
            let is_policy = path.ends_with("policy");
            assert!(
                !is_policy || said.contains("http://***@catalog:8080/v1?***"),
                "{said}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_begins_with_a_snapshot_and_tells_each_change() {
    let policies = policies();
    let router = Admin::new(&policies).router().unwrap();
    let mut body = events(&router).await;
    breaker(&policies).force_open();
    breaker(&policies).reset();
    for (from, to) in [("closed", "forced_open"), ("forced_open", "closed")] {
        let told = next(&mut body).await.unwrap();
        let data = told.strip_prefix("event: breaker\ndata: ").unwrap();
        let told: Value = serde_json::from_str(data).unwrap();
        assert_eq!(
            (&told["dependency"], &told["observes"]),
            (&"catalog".into(), &"attempts".into())
        );
        assert_eq!(
            (&told["from"], &told["to"], &told["cause"]),
            (&from.into(), &to.into(), &"operator".into())
        );
    }
    let told = next(&mut body).await.unwrap();
    assert!(told.starts_with("event: snapshot\n"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_of_reloads_and_follows_what_they_bring() {
    let path = std::env::temp_dir().join(format!("mamparo-admin-{}.toml", std::process::id()));
    std::fs::write(&path, "[dependency.catalog]\n").unwrap();
    let policies = Policies::loader().file(&path).load().unwrap();
    let router = Admin::new(&policies).router().unwrap();
    let mut body = events(&router).await;
    std::fs::write(&path, "[dependency.catalog]\n[dependency.psp]\n").unwrap();
    policies.reload().unwrap();
    let told = next(&mut body).await.unwrap();
    assert!(
        told.contains("event: reload") && told.contains("\"accepted\":true"),
        "{told}"
    );
    let told = next(&mut body).await.unwrap();
    assert!(
        told.contains("event: snapshot") && told.contains("\"psp\""),
        "{told}"
    );
    // What was followed before is not told twice, and what is new is told.
    breaker(&policies).force_open();
    let psp = policies.dependency("psp").unwrap().http().unwrap();
    psp.breaker_handle().unwrap().force_open();
    let told = [
        next(&mut body).await.unwrap(),
        next(&mut body).await.unwrap(),
    ]
    .concat();
    assert!(
        told.contains("\"catalog\"") && told.contains("\"psp\""),
        "{told}"
    );

    std::fs::write(&path, "[dependency.catalog\n").unwrap();
    policies.reload().unwrap_err();
    std::fs::remove_file(&path).unwrap();
    let told = next(&mut body).await.unwrap();
    assert!(
        told.contains("\"accepted\":false,\"at\"") && told.contains("\"problems\":1"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_loses_the_oldest_events_and_hears_how_many() {
    let policies = policies();
    let router = Admin::new(&policies).max_events(4).router().unwrap();
    let mut slow = events(&router).await;
    for _ in 0..10 {
        tokio::task::yield_now().await;
        breaker(&policies).force_open();
        breaker(&policies).reset();
        advance(Duration::from_millis(1)).await;
    }
    let told = next(&mut slow).await.unwrap();
    assert_eq!(told, "event: lost\ndata: {\"events\":16}\n\n");
    for to in ["forced_open", "closed", "forced_open", "closed"] {
        let told = next(&mut slow).await.unwrap();
        assert!(told.contains(&format!("\"to\":\"{to}\"")), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn there_are_so_many_streams_at_once_and_a_place_is_free_when_one_is_dropped() {
    let router = Admin::new(&policies()).max_streams(2).router().unwrap();
    let (one, two) = (events(&router).await, events(&router).await);
    let refused = get(&router, "/events").await;
    assert!(refused.headers().contains_key("retry-after"));
    is_problem(refused, 503).await;
    drop(one);
    let three = events(&router).await;
    is_problem(get(&router, "/events").await, 503).await;
    drop((two, three));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_says_that_it_is_there_and_ends_in_time() {
    let admin = Admin::new(&policies()).keep_alive(Duration::from_secs(10));
    let admin = admin.snapshot_every(Duration::from_secs(3600));
    let router = admin
        .max_stream_time(Duration::from_secs(25))
        .router()
        .unwrap();
    let mut body = events(&router).await;
    assert_eq!(next(&mut body).await.unwrap(), ": still here\n\n");
    assert_eq!(next(&mut body).await.unwrap(), ": still here\n\n");
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn while_nobody_reads_nothing_is_done_and_whoever_comes_later_hears_all() {
    let policies = policies();
    let router = Admin::new(&policies).router().unwrap();
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let body = events(&router).await;
    assert_eq!(tasks(), before + 1);
    drop(body);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(tasks(), before);
    let mut body = events(&router).await;
    breaker(&policies).force_open();
    let told = timeout(Duration::from_secs(1), next(&mut body))
        .await
        .unwrap();
    assert!(told.unwrap().contains("forced_open"));
}

proptest! {
    #[test]
    fn a_token_is_itself_and_no_other(token in "[A-Za-z0-9._~+/=-]{16,256}", other in "[ -~]{0,300}", at in 0_usize..16) {
        let known = Token::checked(&token).unwrap();
        prop_assert!(known.is(token.as_bytes()));
        prop_assert_eq!(known.is(other.as_bytes()), token == other);
        prop_assert!(!known.is(&token.as_bytes()[..token.len() - 1]));
        // What pads a token is no part of one.
        let padded = format!("{token}\0");
        prop_assert!(!known.is(padded.as_bytes()));
        let mut changed = token.into_bytes();
        changed[at] ^= 1;
        prop_assert!(!known.is(&changed));
    }
}
