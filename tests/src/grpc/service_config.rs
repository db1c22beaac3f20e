//! One service config, given to a client of grpcio and to ours: the same server sees the same attempts from both.

use mamparo::grpc::ServiceConfig;
use mamparo::stack::Stack;
use mamparo_testkit::grpc::{Answer, EchoRequest, serve};
use mamparo_testkit::server::Server;
use serde_json::json;
use tonic::Code;

use super::ours::client;
use super::peer::grpcio_calls;

/// A config whose waits are over soon.
fn config(max_attempts: u32, codes: &[&str]) -> String {
    let retry = json!({
        "maxAttempts": max_attempts,
        "initialBackoff": "0.01s",
        "maxBackoff": "0.02s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": codes,
    });
    let name = json!([{"service": "mamparo.test.v1.Echo", "method": "Say"}]);
    json!({"methodConfig": [{"name": name, "retryPolicy": retry}]}).to_string()
}

/// What a server saw: of each attempt the number of those before it.
fn seen(server: &Server) -> Vec<String> {
    let number = |seen: &mamparo_testkit::server::Seen| {
        let number = seen.header("grpc-previous-rpc-attempts");
        number.unwrap_or("none").to_owned()
    };
    server.requests().iter().map(number).collect()
}

/// Calls a server with this script, and returns the code that its client got and what the server saw: grpcio's, then ours.
async fn both(config: &str, script: &[Answer]) -> [(i32, Vec<String>); 2] {
    let server = serve(script.to_vec()).await;
    let call = json!([{"method": "Say", "requests": [{"text": "a"}], "service_config": config}]);
    let outcome = grpcio_calls(server.address(), call).await;
    let code = outcome[0]["code"].as_i64().unwrap();
    let theirs = (i32::try_from(code).unwrap(), seen(&server));

    let server = serve(script.to_vec()).await;
    let config = ServiceConfig::from_json(config).unwrap();
    let stack = Stack::grpc("peer").service_config(&config);
    let said = client(server.address(), &stack)
        .say(EchoRequest::text("a"))
        .await;
    let code = said.map_or_else(|status| status.code(), |_| Code::Ok);
    [theirs, (code.into(), seen(&server))]
}

// Rows A6-01, A6-03, A6-06, A6-08, A6-10, PB-04, PB-10. Not PB-02 and PB-05: to grpcio a pushback of 0 is a call that never
// ends, and garbage fails the call as INTERNAL.
#[tokio::test]
async fn a_server_sees_the_same_attempts_from_grpcio_and_from_us() {
    let busy = Answer::status(Code::Unavailable);
    let pushed = |value| busy.clone().header("grpc-retry-pushback-ms", value);
    let unavailable = config(4, &["UNAVAILABLE"]);
    let cases = [
        ("always busy", &unavailable, vec![busy.clone()], 4),
        (
            "busy once",
            &unavailable,
            vec![busy.clone(), Answer::echo()],
            2,
        ),
        (
            "another failure",
            &unavailable,
            vec![busy.clone(), Answer::status(Code::NotFound)],
            2,
        ),
        (
            "not listed",
            &unavailable,
            vec![Answer::status(Code::Internal), Answer::echo()],
            1,
        ),
        (
            "after the head",
            &unavailable,
            vec![busy.clone().late(), Answer::echo()],
            1,
        ),
        (
            "pushed back",
            &unavailable,
            vec![pushed("10"), pushed("20"), Answer::echo()],
            3,
        ),
        (
            "pushed away",
            &unavailable,
            vec![pushed("-1"), Answer::echo()],
            1,
        ),
        (
            "pushed back, not listed",
            &unavailable,
            vec![
                Answer::status(Code::Internal).header("grpc-retry-pushback-ms", "10"),
                Answer::echo(),
            ],
            1,
        ),
        (
            "more than five",
            &config(10, &["UNAVAILABLE"]),
            vec![busy.clone()],
            5,
        ),
        (
            "two codes",
            &config(3, &["ABORTED", "UNAVAILABLE"]),
            vec![Answer::status(Code::Aborted), busy.clone(), Answer::echo()],
            3,
        ),
    ];
    for (name, config, script, attempts) in cases {
        let [theirs, ours] = both(config, &script).await;
        assert_eq!(theirs, ours, "{name}: grpcio's, then ours");
        assert_eq!(ours.1.len(), attempts, "{name}");
    }
}
