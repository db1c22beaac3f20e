//! What a client sees through each fault.

use super::fault::{Cut, Move, Way};
use super::spread::Spread;
use super::{Fault, FaultProxy};
use crate::body::Frames;
use crate::server::{Reply, Server};
use mamparo_core::clock;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(60);
const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

async fn pair(reply: Reply) -> (Server, FaultProxy) {
    let server = Server::start(reply).await;
    let proxy = FaultProxy::start(server.address()).await;
    (server, proxy)
}

/// Sends a request and reads to the end: how many bytes came, and how the reading ended.
async fn exchange(proxy: &FaultProxy) -> (usize, io::Result<()>) {
    let mut socket = TcpStream::connect(proxy.address()).await.unwrap();
    socket.write_all(GET).await.unwrap();
    let mut bytes = Vec::new();
    let end = socket.read_to_end(&mut bytes).await;
    (bytes.len(), end.map(drop))
}

#[tokio::test]
async fn forwards_everything_without_a_fault() {
    let (server, proxy) = pair(Reply::ok().body(vec![b'x'; 100_000])).await;
    let (length, end) = exchange(&proxy).await;
    assert!(end.is_ok() && length > 100_000);
    assert_eq!((server.requests().len(), proxy.connections()), (1, 1));
}

#[tokio::test]
async fn latency_delays_both_ways() {
    let (server, proxy) = pair(Reply::ok()).await;
    proxy.set(Fault::Latency(SHORT)).await;
    let start = clock::now();
    exchange(&proxy).await.1.unwrap();
    assert!(server.requests()[0].at >= start + SHORT);
    assert!(start.elapsed() >= 2 * SHORT);
}

/// A connection that is far away is not a slow one.
#[tokio::test]
async fn latency_takes_no_bandwidth_away_and_delays_the_end_as_well() {
    const LENGTH: usize = 800_000;
    let (_server, proxy) = pair(Reply::ok().body(vec![b'x'; LENGTH])).await;
    proxy.set(Fault::Latency(SHORT)).await;
    let start = clock::now();
    let (length, end) = exchange(&proxy).await;
    assert!(end.is_ok() && length > LENGTH);
    let took = start.elapsed();
    assert!(took >= 2 * SHORT && took < 20 * SHORT, "{took:?}");
}

#[tokio::test]
async fn jitter_delays_each_piece_by_another_time_and_keeps_their_order() {
    let (least, most) = (Duration::from_millis(5), Duration::from_millis(50));
    let mut frames = Frames::new();
    for letter in ["a", "b", "c", "d", "e"] {
        frames = frames.data(letter).wait(Duration::from_millis(60));
    }
    let (_server, proxy) = pair(Reply::ok().body(frames).streamed()).await;
    proxy.set(Fault::Jitter(least, most)).await;
    let mut socket = TcpStream::connect(proxy.address()).await.unwrap();
    socket.write_all(GET).await.unwrap();
    let (mut text, mut at) = (Vec::new(), Vec::new());
    while socket.read_buf(&mut text).await.unwrap() > 0 {
        at.push(clock::now());
    }
    let text = String::from_utf8(text).unwrap();
    let places = ["a", "b", "c", "d", "e"].map(|letter| text.rfind(&format!("1\r\n{letter}\r\n")));
    assert!(places[0].is_some() && places.is_sorted(), "{text}");
    let gaps = at.windows(2).map(|pair| pair[1] - pair[0]);
    let (shortest, longest) = (gaps.clone().min(), gaps.max());
    assert!(longest.unwrap() > shortest.unwrap() + Duration::from_millis(10));
}

#[tokio::test]
async fn a_share_of_the_connections_meets_the_fault_the_same_in_every_run() {
    for _ in 0..2 {
        let (server, proxy) = pair(Reply::ok()).await;
        proxy.set_for(0.3, Fault::ResetAfter(0)).await;
        let mut failed = Vec::new();
        for _ in 0..10 {
            failed.push(exchange(&proxy).await.1.is_err());
        }
        let expected = [0, 2, 5].map(|connection| failed[connection]);
        assert_eq!(expected, [true; 3]);
        assert_eq!(failed.iter().filter(|failed| **failed).count(), 3);
        proxy.set(Fault::None).await;
        exchange(&proxy).await.1.unwrap();
        assert_eq!(server.requests().len(), 11);
    }
}

#[test]
fn shares_are_spread_evenly() {
    let mut spread = Spread::default();
    for share in [0.0, 0.1, 0.5, 0.9, 1.0] {
        let hit = (0..100).filter(|_| spread.next() < share).count() as f64;
        assert!((hit - 100.0 * share).abs() <= 2.0, "{hit} for {share}");
    }
}

#[tokio::test]
async fn bandwidth_limits_bytes_per_second() {
    let (_server, proxy) = pair(Reply::ok().body(vec![b'x'; 20_000])).await;
    proxy.set(Fault::Bandwidth(100_000)).await;
    let start = clock::now();
    exchange(&proxy).await.1.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(190));
}

#[tokio::test]
async fn truncates_and_resets_after_exactly_so_many_bytes() {
    let (_server, proxy) = pair(Reply::ok().body("a long body")).await;
    proxy.set(Fault::TruncateAfter(30)).await;
    let (length, end) = exchange(&proxy).await;
    assert!(end.is_ok());
    assert_eq!(length, 30);
    proxy.set(Fault::ResetAfter(30)).await;
    let (length, end) = exchange(&proxy).await;
    assert_eq!(
        (length, end.unwrap_err().kind()),
        (30, ErrorKind::ConnectionReset)
    );
    proxy.set(Fault::ResetAfter(0)).await;
    assert_eq!(exchange(&proxy).await.0, 0);
}

#[tokio::test]
async fn a_half_close_ends_reading_and_leaves_writing_open() {
    let (server, proxy) = pair(Reply::ok().body("never seen")).await;
    proxy.set(Fault::HalfClose).await;
    let mut socket = TcpStream::connect(proxy.address()).await.unwrap();
    for sent in 1..=2 {
        socket
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0);
        while server.requests().len() < sent {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn refuses_new_connections_keeps_open_ones_and_opens_again() {
    let (_server, proxy) = pair(Reply::ok()).await;
    let mut open = TcpStream::connect(proxy.address()).await.unwrap();
    open.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    assert!(open.read(&mut [0; 256]).await.unwrap() > 0);

    proxy.set(Fault::Refuse).await;
    let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    open.write_all(GET).await.unwrap();
    assert!(open.read(&mut [0; 256]).await.unwrap() > 0);

    proxy.set(Fault::None).await;
    exchange(&proxy).await.1.unwrap();
}

#[tokio::test]
async fn a_black_hole_is_silent_until_it_is_switched_off() {
    let (server, proxy) = pair(Reply::ok()).await;
    proxy.set(Fault::BlackHole).await;
    assert!(timeout(SHORT, exchange(&proxy)).await.is_err());
    assert_eq!((proxy.connections(), server.connections()), (1, 0));

    proxy.set(Fault::None).await;
    let mut socket = TcpStream::connect(proxy.address()).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    tokio::time::sleep(SHORT).await;
    proxy.set(Fault::BlackHole).await;
    socket.write_all(b"host: a\r\n\r\n").await.unwrap();
    assert!(timeout(SHORT, socket.read(&mut [0; 8])).await.is_err());
    proxy.set(Fault::None).await;
    assert!(socket.read(&mut [0; 8]).await.unwrap() > 0);
}

#[tokio::test]
async fn a_reset_of_the_target_reaches_the_client() {
    let (_server, proxy) = pair(Reply::reset()).await;
    let (length, end) = exchange(&proxy).await;
    assert_eq!(
        (length, end.unwrap_err().kind()),
        (0, ErrorKind::ConnectionReset)
    );
}

#[tokio::test]
async fn the_handler_behind_the_proxy_stops_when_the_client_goes_away() {
    let (server, proxy) = pair(Reply::hang()).await;
    assert!(timeout(SHORT, exchange(&proxy)).await.is_err());
    assert_eq!(server.requests().len(), 1);
    server.until_idle().await;
}

#[test]
fn only_the_way_to_the_client_is_counted_and_cut() {
    let decide = |fault: Fault, way| fault.next_move(way, 7, 5);
    let all = Move::Write(Duration::ZERO, 5);
    for fault in [
        Fault::HalfClose,
        Fault::TruncateAfter(0),
        Fault::ResetAfter(0),
    ] {
        assert_eq!(decide(fault, Way::ToTarget), all);
    }
    let closed = Move::Cut(Duration::ZERO, Cut::Close);
    assert_eq!(decide(Fault::TruncateAfter(7), Way::ToClient), closed);
    let partly = Move::Write(Duration::ZERO, 2);
    assert_eq!(decide(Fault::TruncateAfter(9), Way::ToClient), partly);
}
