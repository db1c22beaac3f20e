//! `grpc-timeout`: up to eight digits and a unit (gRPC over HTTP/2, "Requests").

use std::time::Duration;

use http::HeaderValue;

use super::told::{Malformed, Remaining};
use super::whole;

const MAX_DIGITS: usize = 8;
const LARGEST: u128 = 99_999_999;

const MALFORMED: Malformed = Malformed::expected("1 to 8 digits and a unit (H, M, S, m, u or n)");

pub(super) fn read(text: &[u8]) -> Result<Remaining, Malformed> {
    let (unit, digits) = text.split_last().ok_or(MALFORMED)?;
    let count = whole::digits(digits, MAX_DIGITS).ok_or(MALFORMED)?;
    let time = match unit {
        // Eight digits of hours are 3.6e11 seconds: no unit can overflow.
        b'H' => Duration::from_secs(count * 3_600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return Err(MALFORMED),
    };
    Ok(match time {
        Duration::ZERO => Remaining::Expired,
        time => Remaining::For(time),
    })
}

/// Writes in the finest unit that fits, so that rounding down loses least.
pub(super) fn write(remaining: Duration) -> HeaderValue {
    let seconds = remaining.as_secs();
    let finest = [
        (remaining.as_nanos().max(1), b'n'),
        (remaining.as_micros(), b'u'),
        (remaining.as_millis(), b'm'),
        (seconds.into(), b'S'),
        ((seconds / 60).into(), b'M'),
    ]
    .into_iter()
    .find(|(count, _)| *count <= LARGEST);
    let (count, unit) = finest.unwrap_or((u128::from(seconds / 3_600).min(LARGEST), b'H'));
    whole::text(whole::saturate(count), Some(unit))
}
