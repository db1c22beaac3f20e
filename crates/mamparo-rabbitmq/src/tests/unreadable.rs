//! A message that the client can't read: a header whose name is no UTF-8.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_testkit::private::PrivateRabbit;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tower::service_fn;

use super::support::{Running, consumer, depth, look, must, publish, publisher, queue, until};
use crate::{Delivery, Message, Topology};

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;

/// The frame of AMQP 0-9-1 (section 4.2.3).
fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    frame.extend(channel.to_be_bytes());
    frame.extend((payload.len() as u32).to_be_bytes());
    frame.extend(payload);
    frame.push(0xCE);
    frame
}

/// Says each by hand, and hears an answer to each but the last: no client would publish it.
async fn publish_unreadable(queue: &str) -> TcpStream {
    let address = PrivateRabbit::shared().await.address();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let start_ok = b"\0\x0a\0\x0b\0\0\0\0\x05PLAIN\0\0\0\x0c\0guest\0guest\x05en_US";
    let tune_ok = frame(METHOD, 0, b"\0\x0a\0\x1f\x07\xff\0\x02\0\0\0\0");
    let open = frame(METHOD, 0, b"\0\x0a\0\x28\x01/\0\0");
    let publish = [
        b"\0\x3c\0\x28\0\0\0",
        &[queue.len() as u8][..],
        queue.as_bytes(),
        b"\0",
    ]
    .concat();
    // One property, the headers; of these, one with the name 0xff and an empty text.
    let header = b"\0\x3c\0\0\0\0\0\0\0\0\0\x01\x20\0\0\0\0\x07\x01\xffS\0\0\0\0";
    let message = [
        frame(METHOD, 1, &publish),
        frame(HEADER, 1, header),
        frame(BODY, 1, b"x"),
    ];
    for words in [
        b"AMQP\0\0\x09\x01".to_vec(),
        frame(METHOD, 0, start_ok),
        [tune_ok, open].concat(),
        frame(METHOD, 1, b"\0\x14\0\x0a\0"),
    ] {
        stream.write_all(&words).await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
    }
    stream.write_all(&message.concat()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_consumer_is_careful_only_until_what_it_could_not_read_is_gone() {
    let topology = Topology::builder(queue())
        .delivery_limit(1)
        .build()
        .unwrap();
    let publisher = publisher(&topology).await;
    let _stream = publish_unreadable(topology.queue()).await;
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let slow = {
        let (now, most) = (now.clone(), most.clone());
        service_fn(move |_: Delivery| {
            let (now, most) = (now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok::<(), BoxError>(())
            }
        })
    };
    let running = Running::start(consumer(&topology).await.build().unwrap(), slow);
    let (_connection, channel) = look().await;
    must(async {
        while depth(&channel, &topology.dead_letters()).await == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    for _ in 0..100 {
        publish(&publisher, &topology, Message::new("")).await;
    }
    until(|| most.load(Ordering::SeqCst) > 1).await;
    running.stop().await;
}
