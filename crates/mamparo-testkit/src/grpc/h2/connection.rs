//! One connection: reads frames, and plays an exchange for each request.

use super::exchange::{Exchange, Step};
use super::frame::{self, Frame, PREFACE};
use super::server::Ledger;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;

/// The side of a connection that is written to, which all its streams share.
#[derive(Clone, Debug)]
struct Out {
    writer: Arc<Mutex<OwnedWriteHalf>>,
    closed: Arc<Notify>,
    ledger: Ledger,
}

/// Serves a connection until either side closes it.
pub(super) async fn serve(socket: TcpStream, ledger: Ledger) {
    let (reader, writer) = socket.into_split();
    let out = Out {
        writer: Arc::new(Mutex::new(writer)),
        closed: Arc::default(),
        ledger: ledger.clone(),
    };
    tokio::select! {
        () = out.closed.notified() => {}
        _ = read(reader, &out) => {} // ends with an error only: the client has gone
    }
    ledger.closed();
}

async fn read(mut reader: OwnedReadHalf, out: &Out) -> io::Result<()> {
    let mut preface = [0; PREFACE.len()];
    reader.read_exact(&mut preface).await?;
    out.send(Frame::new(frame::SETTINGS, 0, 0, Vec::new()))
        .await?;
    let mut streams = Streams::default();
    let mut plays = JoinSet::new();
    loop {
        let frame = Frame::read(&mut reader).await?;
        if let Some(exchange) = streams.next(&frame, &out.ledger) {
            plays.spawn(play(exchange, frame.stream, out.clone()));
        }
        out.answer(frame).await?;
    }
}

/// The requests of a connection that have not arrived as a whole.
#[derive(Debug, Default)]
struct Streams {
    newest: u32,
    arriving: HashMap<u32, Exchange>,
}

impl Streams {
    /// The exchange that begins with a frame, if one does.
    fn next(&mut self, frame: &Frame, ledger: &Ledger) -> Option<Exchange> {
        if !matches!(frame.kind, frame::HEADERS | frame::DATA) {
            return None;
        }
        let complete = frame.has(frame::END_STREAM);
        if frame.stream <= self.newest {
            return complete.then(|| self.arriving.remove(&frame.stream))?;
        }
        self.newest = frame.stream;
        let exchange = ledger.begin(frame.stream);
        if exchange.early || complete {
            return Some(exchange);
        }
        self.arriving.insert(frame.stream, exchange);
        None
    }
}

impl Out {
    async fn send(&self, frame: Frame) -> io::Result<()> {
        self.writer.lock().await.write_all(&frame.encode()).await
    }

    /// Does what a frame asks of any server.
    async fn answer(&self, frame: Frame) -> io::Result<()> {
        match frame.kind {
            kind @ (frame::SETTINGS | frame::PING) if !frame.has(frame::ACK) => {
                let echoed = if kind == frame::PING {
                    frame.payload
                } else {
                    [].as_slice().into()
                };
                self.send(Frame::new(kind, frame::ACK, 0, echoed)).await
            }
            frame::DATA if !frame.payload.is_empty() => {
                let bytes = u32::try_from(frame.payload.len()).expect("a short frame");
                self.send(Frame::window(0, bytes)).await?;
                self.send(Frame::window(frame.stream, bytes)).await
            }
            frame::RST_STREAM => {
                self.ledger.was_reset(frame.stream, frame.reason());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn close(&self) -> io::Result<()> {
        self.writer.lock().await.shutdown().await?;
        self.closed.notify_one();
        Ok(())
    }
}

/// Plays an exchange until its end, or until nobody reads it.
async fn play(exchange: Exchange, stream: u32, out: Out) -> io::Result<()> {
    for step in exchange.steps {
        let (frame, last) = match step {
            Step::Wait(duration) => {
                tokio::time::sleep(duration).await;
                continue;
            }
            Step::Close => return out.close().await,
            Step::GoAway { below, reason } => {
                let last_stream = if below {
                    stream.saturating_sub(2)
                } else {
                    stream
                };
                (Frame::go_away(last_stream, reason), false)
            }
            Step::Headers { fields, last } => (Frame::headers(stream, &fields, last), last),
            Step::Data { data, last } => (Frame::data(stream, data, last), last),
            Step::Reset(reason) => (Frame::reset(stream, reason), true),
        };
        if last {
            out.ledger.ended(stream);
        }
        out.send(frame).await?;
    }
    Ok(())
}
