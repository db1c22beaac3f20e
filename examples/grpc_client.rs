//! Shows a generated tonic client behind the whole stack: a deadline, a retry that the server asked for, a stream cut in time.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use mamparo::deadline::DeadlinePolicy;
use mamparo::stack::Stack;
use mamparo_core::{BoxError, clock};
use mamparo_testkit::grpc::{Answer, EchoClient, EchoRequest, serve};
use tonic::Code;
use tonic::transport::Endpoint;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // It says first that it is unavailable, and when to come back.
    let busy = Answer::status(Code::Unavailable).header("grpc-retry-pushback-ms", "100");
    let server = serve([busy, Answer::echo()]).await;

    let stack = Stack::grpc("echo").deadline(DeadlinePolicy::within(Duration::from_millis(500))?);
    let channel = Endpoint::from_shared(server.url(""))?.connect_lazy();
    let mut echo = EchoClient::new(mamparo::client::tonic(channel, &stack));

    let start = clock::now();
    let reply = echo.say(EchoRequest::text("hola")).await?.into_inner();
    println!("{} after {:?}", reply.text, start.elapsed());
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "sent again");
    assert!(
        start.elapsed() >= Duration::from_millis(100),
        "not before it was asked for"
    );
    for request in &requests {
        let told = |name| request.header(name).unwrap_or("–");
        println!(
            "the server was given {}, after {} attempts",
            told("grpc-timeout"),
            told("grpc-previous-rpc-attempts")
        );
    }

    // A hundred frames, 100 ms apart, take longer than the deadline lets them.
    let start = clock::now();
    let mut slow = EchoRequest::text("tick");
    (slow.frames, slow.every_ms) = (100, 100);
    let mut ticks = echo.count(slow).await?.into_inner();
    let mut frames = 0;
    let status = loop {
        match ticks.message().await {
            Ok(Some(_)) => frames += 1,
            Ok(None) => return Err("the stream came to its end".into()),
            Err(status) => break status,
        }
    };
    println!(
        "{frames} frames, then after {:?}: {}",
        start.elapsed(),
        status.message()
    );
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(frames < 10, "not all of them");
    Ok(())
}
