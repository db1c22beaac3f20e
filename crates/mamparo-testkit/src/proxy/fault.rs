//! What can go wrong on the way, and what it means for the next bytes.

use super::spread::Spread;
use std::time::Duration;

/// Slices in which a limited bandwidth lets bytes pass, in one second.
const SLICES: u64 = 100;

/// How long bytes that were let pass have to be read, before a reset discards what was not.
const RESET_WAIT: Duration = Duration::from_millis(20);

/// What the proxy does to the bytes that it forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Forwards unspoiled.
    None,
    /// Everything arrives this much later, in both directions; it takes no bandwidth away.
    Latency(Duration),
    /// Everything arrives later by a time between two, another one for each piece, in both directions and in order.
    Jitter(Duration, Duration),
    /// Forwards so many bytes per second, at least 1, in each direction.
    Bandwidth(u64),
    /// Ends the client's read side (FIN) where a response would come; its write side stays open.
    HalfClose,
    /// Closes the connection (FIN) when so many bytes went to the client.
    TruncateAfter(u64),
    /// Resets the connection (RST) when so many bytes went to the client.
    ResetAfter(u64),
    /// Stops listening: new connections are refused, open ones go on.
    Refuse,
    /// Accepts connections and forwards nothing, nor does it connect.
    BlackHole,
}

/// The way that bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToTarget,
    ToClient,
}

/// How a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Close,
    Reset,
}

/// What to do with the next bytes of one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Wait, then write this many of them.
    Write(Duration, usize),
    /// Wait until the fault changes.
    Stall,
    /// End this way.
    End,
    /// Wait, then cut both ways.
    Cut(Duration, Cut),
}

impl Fault {
    /// Decides over `waiting` bytes, when `passed` went this way before them.
    pub(super) fn next_move(self, way: Way, passed: u64, waiting: usize) -> Move {
        let at_most = |limit: u64| waiting.min(usize::try_from(limit).unwrap_or(usize::MAX));
        match (self, way) {
            (Self::Bandwidth(rate), _) => {
                let rate = rate.max(1);
                let slice = at_most(rate.div_ceil(SLICES));
                Move::Write(Duration::from_secs_f64(slice as f64 / rate as f64), slice)
            }
            (Self::BlackHole, _) => Move::Stall,
            (Self::HalfClose, Way::ToClient) => Move::End,
            (Self::TruncateAfter(limit), Way::ToClient) if passed >= limit => {
                Move::Cut(Duration::ZERO, Cut::Close)
            }
            (Self::ResetAfter(limit), Way::ToClient) if passed >= limit => {
                Move::Cut(RESET_WAIT, Cut::Reset)
            }
            (Self::TruncateAfter(limit) | Self::ResetAfter(limit), Way::ToClient) => {
                Move::Write(Duration::ZERO, at_most(limit - passed))
            }
            (Self::None | Self::Refuse | Self::Latency(_) | Self::Jitter(..), _)
            | (_, Way::ToTarget) => Move::Write(Duration::ZERO, waiting),
        }
    }

    /// How much later than it was sent a piece arrives.
    pub(super) fn late(self, spread: &mut Spread) -> Duration {
        match self {
            Self::Latency(time) => time,
            Self::Jitter(least, most) => least + most.saturating_sub(least).mul_f64(spread.next()),
            _ => Duration::ZERO,
        }
    }
}
