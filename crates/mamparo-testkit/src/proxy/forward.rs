//! Forwards one connection, as the fault of the moment lets it.

use super::fault::{Cut, Fault, Move, Way};
use super::spread::Spread;
use super::weather::Weather;
use mamparo_core::clock::{self, Instant};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until};

/// Bytes that are read at once: one piece.
const CHUNK: usize = 16 * 1024;

/// Pieces that are on their way at once, each way; with these, reading waits.
const ON_THE_WAY: usize = 64;

/// Connects to the target and forwards until both ways are over, or one is cut.
pub(super) async fn forward(mut client: TcpStream, target: SocketAddr, mut weather: Weather) {
    while weather.fault() == Fault::BlackHole {
        if weather.change().await.is_err() {
            return;
        }
    }
    let cut = match TcpStream::connect(target).await {
        Ok(mut target) => both_ways(&mut client, &mut target, weather).await,
        Err(_) => Err(Cut::Reset),
    };
    if cut == Err(Cut::Reset) {
        // A client that is gone already needs no reset.
        drop(client.set_zero_linger());
    }
}

async fn both_ways(
    client: &mut TcpStream,
    target: &mut TcpStream,
    weather: Weather,
) -> Result<(), Cut> {
    client.set_nodelay(true).map_err(|_| Cut::Reset)?;
    target.set_nodelay(true).map_err(|_| Cut::Reset)?;
    let (from_client, to_client) = client.split();
    let (from_target, to_target) = target.split();
    let there = Pump::new(to_target, Way::ToTarget, weather.clone());
    let back = Pump::new(to_client, Way::ToClient, weather);
    tokio::try_join!(there.run(from_client), back.run(from_target))?;
    Ok(())
}

/// What came from one side, and when.
struct Piece {
    at: Instant,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    End,
    Reset,
}

/// Reads pieces until their end, and goes on reading when nobody wants them: a sender must not be held up by its own receiver.
async fn read(mut from: ReadHalf<'_>, pieces: mpsc::Sender<Piece>) -> Result<(), Cut> {
    let mut chunk = [0; CHUNK];
    loop {
        let content = match from.read(&mut chunk).await {
            Ok(0) => Content::End,
            Ok(length) => Content::Bytes(chunk[..length].to_vec()),
            Err(_) => Content::Reset,
        };
        let over = !matches!(content, Content::Bytes(_));
        let at = clock::now();
        drop(pieces.send(Piece { at, content }).await);
        if over {
            return Ok(());
        }
    }
}

/// Forwards one way.
struct Pump<'a> {
    to: WriteHalf<'a>,
    way: Way,
    passed: u64,
    weather: Weather,
    spread: Spread,
}

impl<'a> Pump<'a> {
    fn new(to: WriteHalf<'a>, way: Way, weather: Weather) -> Self {
        Self {
            to,
            way,
            passed: 0,
            weather,
            spread: Spread::default(),
        }
    }

    async fn run(self, from: ReadHalf<'_>) -> Result<(), Cut> {
        let (sender, receiver) = mpsc::channel(ON_THE_WAY);
        tokio::try_join!(read(from, sender), self.write(receiver))?;
        Ok(())
    }

    /// Writes pieces as they are due.
    async fn write(mut self, mut pieces: mpsc::Receiver<Piece>) -> Result<(), Cut> {
        while let Some(Piece { at, content }) = pieces.recv().await {
            sleep_until(at + self.weather.fault().late(&mut self.spread)).await;
            let bytes = match content {
                Content::Bytes(bytes) => bytes,
                Content::End => break,
                Content::Reset => return Err(Cut::Reset),
            };
            if self.write_piece(&bytes).await?.is_break() {
                break;
            }
        }
        // Fails only if the other side ended too.
        drop(self.to.shutdown().await);
        Ok(())
    }

    /// Writes a piece slice by slice; goes once more when nothing waits, to cut at the limit itself.
    async fn write_piece(&mut self, mut waiting: &[u8]) -> Result<ControlFlow<()>, Cut> {
        loop {
            let fault = self.weather.fault();
            match fault.next_move(self.way, self.passed, waiting.len()) {
                Move::Write(..) if waiting.is_empty() => return Ok(ControlFlow::Continue(())),
                Move::Write(time, length) => {
                    sleep(time).await;
                    let (slice, rest) = waiting.split_at(length);
                    self.to.write_all(slice).await.map_err(|_| Cut::Reset)?;
                    self.passed += length as u64;
                    waiting = rest;
                }
                Move::Stall => self.weather.change().await.map_err(|_| Cut::Close)?,
                Move::End => return Ok(ControlFlow::Break(())),
                Move::Cut(time, cut) => {
                    sleep(time).await;
                    return Err(cut);
                }
            }
        }
    }
}
