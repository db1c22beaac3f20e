//! Peers that break HTTP/2, or gRPC on top of it: a clear status, no hang, and nothing held afterwards.

use std::time::Duration;

use h2::Reason;
use mamparo::bulkhead::BulkheadPolicy;
use mamparo::deadline::DeadlinePolicy;
use mamparo::retry::RetryPolicy;
use mamparo::stack::Stack;
use mamparo_core::{Backoff, clock};
use mamparo_testkit::grpc::{EchoReply, EchoRequest, Exchange, ScriptedH2};
use tonic::{Code, Status};

use super::ours::{Client, GrpcStack, client};

const MS: Duration = Duration::from_millis(1);

/// For whoever answers: no test waits for it.
const LONG: Duration = Duration::from_secs(20);

/// One call at a time: a place that is not given back is missed at once.
fn stack(limit: Duration) -> GrpcStack {
    let narrow = BulkheadPolicy::builder().limit(1).max_waiting(0);
    let backoff = Backoff::builder().base(MS).cap(MS).build().unwrap();
    Stack::grpc("peer")
        .deadline(DeadlinePolicy::within(limit).unwrap())
        .bulkhead(narrow.build().unwrap())
        .retry(RetryPolicy::builder().backoff(backoff).build().unwrap())
}

fn good() -> Exchange {
    let reply = EchoReply {
        text: "good".to_owned(),
        number: 1,
    };
    let answer = Exchange::new().head().message(&reply);
    answer.trailers(&[("grpc-status", "0")])
}

/// Reads a stream to its end.
async fn count(client: &mut Client) -> Result<usize, Status> {
    let mut frames = client.count(EchoRequest::text("a")).await?.into_inner();
    let mut seen = 0;
    while frames.message().await?.is_some() {
        seen += 1;
    }
    Ok(seen)
}

/// What comes of a call of each of two kinds, and that the next one finds all in order.
async fn broken(exchange: &Exchange, limit: Duration) -> [(Code, String); 2] {
    let script = [exchange.clone(), good(), exchange.clone(), good()];
    let server = ScriptedH2::start(script).await;
    let mut client = client(server.address(), &stack(limit));
    let started = clock::now();
    let said = client.say(EchoRequest::text("a")).await.unwrap_err();
    let next = client.say(EchoRequest::text("a")).await.unwrap();
    assert_eq!(next.into_inner().text, "good");
    let counted = count(&mut client).await.unwrap_err();
    assert_eq!(count(&mut client).await.unwrap(), 1);
    assert!(started.elapsed() < LONG / 2, "{exchange:?}");
    server.until_idle().await;
    assert_eq!(server.streams(), 4, "{exchange:?}");
    [said, counted].map(|status| (status.code(), status.message().to_owned()))
}

#[tokio::test]
async fn a_peer_that_never_ends_its_stream_is_given_up_at_the_deadline() {
    let reply = EchoReply::default();
    let endless = [
        Exchange::new(),
        Exchange::new().head(),
        Exchange::new().head().message(&reply),
        Exchange::new().head().data(vec![0, 0, 0, 0, 9]),
    ];
    for exchange in endless {
        for (code, message) in broken(&exchange, 300 * MS).await {
            assert_eq!(code, Code::DeadlineExceeded, "{exchange:?}: {message}");
        }
    }
}

// Row GS-06
#[tokio::test]
async fn a_stream_that_is_reset_has_the_code_that_its_reason_stands_for() {
    let reasons = [
        (Reason::CANCEL, Code::Cancelled),
        (Reason::ENHANCE_YOUR_CALM, Code::ResourceExhausted),
        (Reason::INADEQUATE_SECURITY, Code::PermissionDenied),
        (Reason::PROTOCOL_ERROR, Code::Internal),
        (Reason::INTERNAL_ERROR, Code::Internal),
        (Reason::FLOW_CONTROL_ERROR, Code::Internal),
    ];
    for (reason, expected) in reasons {
        let before = Exchange::new().reset(reason);
        let after = Exchange::new().head().wait(5 * MS).reset(reason);
        let amid = Exchange::new()
            .head()
            .message(&EchoReply::default())
            .wait(5 * MS)
            .reset(reason);
        for exchange in [before, after, amid] {
            for (code, message) in broken(&exchange, LONG).await {
                assert_eq!(code, expected, "{exchange:?}: {message}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_for_no_reason_is_over_without_a_status() {
    // "NO_ERROR" after a head is no error to hyper, which ends the body there (RFC 9113, section 8.1).
    let exchange = Exchange::new().head().wait(5 * MS).reset(Reason::NO_ERROR);
    for (code, message) in broken(&exchange, LONG).await {
        assert_eq!(code, Code::Unknown, "{message}");
        assert!(message.contains("missing grpc-status"), "{message}");
    }
    let exchange = Exchange::new().reset(Reason::NO_ERROR);
    for (code, message) in broken(&exchange, LONG).await {
        assert_eq!(code, Code::Internal, "{message}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_without_a_status_says_so() {
    let reply = EchoReply::default();
    let ends = [
        Exchange::new().head().end(),
        Exchange::new().head().message(&reply).end(),
        Exchange::new()
            .head()
            .message(&reply)
            .trailers(&[("x", "y")]),
        Exchange::new().trailers_only(&[("x", "y")]),
    ];
    for exchange in ends {
        for (code, message) in broken(&exchange, LONG).await {
            assert_eq!(code, Code::Unknown, "{exchange:?}: {message}");
            assert!(message.contains("grpc-status"), "{exchange:?}: {message}");
        }
    }
}

// Row GS-03
#[tokio::test]
async fn a_status_that_can_t_be_read_is_unknown_and_its_text_is_kept() {
    for status in ["99", "abc", "", "-1", "1.0"] {
        let fields = [("grpc-status", status), ("grpc-message", "100%")];
        let head = Exchange::new().head();
        let exchanges = [
            Exchange::new().trailers_only(&fields),
            head.clone().trailers(&fields),
            head.message(&EchoReply::default()).trailers(&fields),
        ];
        for exchange in exchanges {
            for (code, message) in broken(&exchange, LONG).await {
                assert_eq!(code, Code::Unknown, "{exchange:?}");
                assert_eq!(message, "100%", "{exchange:?}");
            }
        }
    }
}

#[tokio::test]
async fn trailers_that_come_twice_or_do_not_end_the_stream_are_no_harm() {
    let failed = [("grpc-status", "9"), ("grpc-message", "first")];
    let ok = [("grpc-status", "0")];
    let head = Exchange::new().head();
    let twice = [
        Exchange::new().trailers_only(&failed).trailers(&ok),
        head.clone().trailers(&failed).trailers(&ok),
    ];
    for exchange in twice {
        for told in broken(&exchange, LONG).await {
            assert_eq!(told, (Code::FailedPrecondition, "first".to_owned()));
        }
    }
    let open = head.open_trailers(&failed);
    for exchange in [open.clone(), open.trailers(&ok)] {
        for (code, message) in broken(&exchange, LONG).await {
            assert_eq!(code, Code::Internal, "{exchange:?}: {message}");
        }
    }
}

#[tokio::test]
async fn a_page_in_the_place_of_an_answer_is_told_by_its_status() {
    let page = "<html><body>It works!</body></html>";
    for (status, expected) in [
        ("200", Code::Unknown),
        ("404", Code::Unimplemented),
        ("400", Code::Internal),
    ] {
        let html = Exchange::new().headers(status, &[("content-type", "text/html")]);
        let exchanges = [
            html.clone().data(page).end(),
            html.clone().end(),
            html.data(page).trailers(&[("x", "y")]),
        ];
        for exchange in exchanges {
            for (code, message) in broken(&exchange, LONG).await {
                assert_eq!(code, expected, "{exchange:?}: {message}");
                assert!(message.contains("text/html"), "{message}");
            }
        }
    }
}

// Rows TR-02, GS-06
#[tokio::test]
async fn a_refused_stream_is_sent_again_and_one_that_always_is_ends_as_unavailable() {
    let refused = Exchange::new().reset(Reason::REFUSED_STREAM);
    let server = ScriptedH2::start([refused.clone(), good()]).await;
    let mut refused_once = client(server.address(), &stack(LONG));
    refused_once.say(EchoRequest::text("a")).await.unwrap();
    assert_eq!(server.streams(), 2);

    let server = ScriptedH2::start([refused]).await;
    let mut refused_always = client(server.address(), &stack(LONG));
    let status = refused_always
        .say(EchoRequest::text("a"))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!((3..=4).contains(&server.streams()), "{}", server.streams());
}

// Row TR-02
#[tokio::test]
async fn a_request_above_a_goaway_is_sent_again_over_another_connection() {
    let server = ScriptedH2::start([good(), Exchange::new().go_away(), good()]).await;
    let mut client = client(server.address(), &stack(LONG));
    client.say(EchoRequest::text("a")).await.unwrap();
    client.say(EchoRequest::text("b")).await.unwrap();
    assert_eq!((server.connections(), server.streams()), (2, 3));
}

#[tokio::test]
async fn a_request_below_a_goaway_is_answered() {
    let last = Exchange::new().last(Reason::NO_ERROR).wait(20 * MS).head();
    let last = last
        .message(&EchoReply::default())
        .trailers(&[("grpc-status", "0")]);
    let server = ScriptedH2::start([last, good()]).await;
    let mut client = client(server.address(), &stack(LONG));
    client.say(EchoRequest::text("a")).await.unwrap();
    client.say(EchoRequest::text("b")).await.unwrap();
    assert_eq!((server.connections(), server.streams()), (2, 2));
}

// Row TR-04
#[tokio::test]
async fn a_call_whose_connection_breaks_is_unavailable_and_not_sent_again_by_default() {
    let head = Exchange::new().head();
    let breaks = [
        Exchange::new().close(),
        head.clone().wait(5 * MS).close(),
        head.message(&EchoReply::default()).wait(5 * MS).close(),
    ];
    for exchange in breaks {
        for (code, message) in broken(&exchange, LONG).await {
            assert_eq!(code, Code::Unavailable, "{exchange:?}: {message}");
        }
    }
}
