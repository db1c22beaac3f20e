//! Forwards one connection, as the fault of the moment lets it.

use super::fault::{Cut, Fault, Move, Way};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::sleep;

/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// Connects to the target and forwards until both ways are over, or one is cut.
pub(super) async fn forward(
    mut client: TcpStream,
    target: SocketAddr,
    mut faults: watch::Receiver<Fault>,
) {
    let lit = faults.wait_for(|fault| *fault != Fault::BlackHole);
    if lit.await.is_err() {
        return;
    }
    let cut = match TcpStream::connect(target).await {
        Ok(mut target) => both_ways(&mut client, &mut target, faults).await,
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
    faults: watch::Receiver<Fault>,
) -> Result<(), Cut> {
    client.set_nodelay(true).map_err(|_| Cut::Reset)?;
    target.set_nodelay(true).map_err(|_| Cut::Reset)?;
    let (from_client, to_client) = client.split();
    let (from_target, to_target) = target.split();
    let there = Pump::new(to_target, Way::ToTarget, faults.clone());
    let back = Pump::new(to_client, Way::ToClient, faults);
    tokio::try_join!(there.run(from_client), back.run(from_target))?;
    Ok(())
}

/// Forwards one way.
struct Pump<'a> {
    to: WriteHalf<'a>,
    way: Way,
    passed: u64,
    faults: watch::Receiver<Fault>,
}

impl<'a> Pump<'a> {
    fn new(to: WriteHalf<'a>, way: Way, faults: watch::Receiver<Fault>) -> Self {
        Self {
            to,
            way,
            passed: 0,
            faults,
        }
    }

    async fn run(mut self, mut from: ReadHalf<'_>) -> Result<(), Cut> {
        let mut chunk = [0; CHUNK];
        loop {
            let length = from.read(&mut chunk).await.map_err(|_| Cut::Reset)?;
            if length == 0 || self.write(&chunk[..length]).await?.is_break() {
                break;
            }
        }
        // Fails only if the other side ended too.
        drop(self.to.shutdown().await);
        while from.read(&mut chunk).await.map_err(|_| Cut::Reset)? > 0 {}
        Ok(())
    }

    /// Writes a chunk slice by slice; goes once more when nothing waits, to cut at the limit itself.
    async fn write(&mut self, mut waiting: &[u8]) -> Result<ControlFlow<()>, Cut> {
        loop {
            let fault = *self.faults.borrow_and_update();
            match fault.next_move(self.way, self.passed, waiting.len()) {
                Move::Write(..) if waiting.is_empty() => return Ok(ControlFlow::Continue(())),
                Move::Write(time, length) => {
                    sleep(time).await;
                    let (slice, rest) = waiting.split_at(length);
                    self.to.write_all(slice).await.map_err(|_| Cut::Reset)?;
                    self.passed += length as u64;
                    waiting = rest;
                }
                Move::Stall => self.faults.changed().await.map_err(|_| Cut::Close)?,
                Move::End => return Ok(ControlFlow::Break(())),
                Move::Cut(time, cut) => {
                    sleep(time).await;
                    return Err(cut);
                }
            }
        }
    }
}
