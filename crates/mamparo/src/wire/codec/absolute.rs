//! Times of day: epoch milliseconds, RFC 3339, and Finagle's pair of nanosecond counts.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

use super::told::{Malformed, nanos_since_epoch};
use super::whole;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The last millisecond that four digits of year can say: 9999-12-31T23:59:59.999Z.
const LAST_MILLI_OF_9999: u64 = 253_402_300_799_999;

const EPOCH_MALFORMED: Malformed =
    Malformed::expected("whole milliseconds since 1970, 1 to 19 digits");
const RFC3339_MALFORMED: Malformed =
    Malformed::expected("a time as in RFC 3339, such as 2026-01-31T23:59:59.999Z");
const FINAGLE_MALFORMED: Malformed =
    Malformed::expected("base64 of two 64-bit counts of nanoseconds since 1970");

/// Reads epoch milliseconds, as nanoseconds since the epoch.
pub(super) fn read_epoch_millis(text: &[u8]) -> Result<i128, Malformed> {
    let millis = whole::digits(text, whole::MAX_DIGITS).ok_or(EPOCH_MALFORMED)?;
    Ok(i128::from(millis) * NANOS_PER_MILLI)
}

pub(super) fn write_epoch_millis(remaining: Duration, wall: SystemTime) -> HeaderValue {
    whole::text(millis_of_deadline(remaining, wall, whole::LARGEST), None)
}

/// Reads a time as in RFC 3339 section 5.6, as nanoseconds since the epoch.
pub(super) fn read_rfc3339(text: &[u8]) -> Result<i128, Malformed> {
    parse_rfc3339(text).ok_or(RFC3339_MALFORMED)
}

fn parse_rfc3339(text: &[u8]) -> Option<i128> {
    const DATE_AND_TIME: usize = "2026-01-31T23:59:59".len();
    let (time, rest) = std::str::from_utf8(text)
        .ok()?
        .split_at_checked(DATE_AND_TIME)?;
    if time.as_bytes().get(10) != Some(&b'T') {
        return None;
    }
    // humantime reads the calendar. The rest is read here: it knows no offset, and takes `59.Z` and `59ZjunkZ`.
    let seconds = humantime::parse_rfc3339_weak(time).ok()?;
    let (fraction, zone) = parse_fraction(rest)?;
    Some(nanos_since_epoch(seconds) + fraction - parse_offset(zone)? * NANOS_PER_SECOND)
}

/// Splits a fraction of a second off, in nanoseconds; what is finer is dropped, which only shortens.
fn parse_fraction(rest: &str) -> Option<(i128, &str)> {
    let Some(fraction) = rest.strip_prefix('.') else {
        return Some((0, rest));
    };
    let end = fraction.find(|c: char| !c.is_ascii_digit())?;
    let (digits, zone) = fraction.split_at(end);
    let finest = digits.get(..9).unwrap_or(digits);
    let count = whole::digits(finest.as_bytes(), 9)?;
    let missing = 9 - u32::try_from(finest.len()).ok()?;
    Some((i128::from(count) * 10_i128.pow(missing), zone))
}

/// Reads `Z`, `+hh:mm` or `-hh:mm`, as seconds ahead of UTC.
fn parse_offset(zone: &str) -> Option<i128> {
    let (sign, hours, minutes) = match zone.as_bytes() {
        b"Z" => return Some(0),
        [b'+', h1, h2, b':', m1, m2] => (1, [*h1, *h2], [*m1, *m2]),
        [b'-', h1, h2, b':', m1, m2] => (-1, [*h1, *h2], [*m1, *m2]),
        _ => return None,
    };
    let hours = whole::digits(&hours, 2).filter(|hours| *hours < 24)?;
    let minutes = whole::digits(&minutes, 2).filter(|minutes| *minutes < 60)?;
    Some(sign * i128::from(hours * 3_600 + minutes * 60))
}

pub(super) fn write_rfc3339(remaining: Duration, wall: SystemTime) -> HeaderValue {
    let millis = millis_of_deadline(remaining, wall, LAST_MILLI_OF_9999);
    let time = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(millis));
    let mut text = *b"1970-01-01T00:00:00.000Z";
    let written = write!(text.as_mut_slice(), "{time}");
    debug_assert!(written.is_ok(), "up to 9999 the text has this very length");
    whole::visible(&text)
}

/// Reads Finagle's deadline, as nanoseconds since the epoch; the timestamp before it says when it was set.
pub(super) fn read_finagle(text: &[u8]) -> Result<i128, Malformed> {
    const ENCODED: usize = 24;
    let mut pair = [0; 18]; // the decoder asks for room in whole groups of three
    if text.len() != ENCODED || STANDARD.decode_slice(text, &mut pair) != Ok(16) {
        return Err(FINAGLE_MALFORMED);
    }
    let [_, _, _, _, _, _, _, _, deadline @ .., _, _] = pair;
    Ok(i64::from_be_bytes(deadline).into())
}

pub(super) fn write_finagle(remaining: Duration, wall: SystemTime) -> HeaderValue {
    let set = nanos_since_epoch(wall);
    let deadline = set + remaining.as_nanos().max(1).cast_signed();
    let pair = [set, deadline].map(|nanos| {
        let bounds = (i64::MIN.into(), i64::MAX.into());
        (nanos.clamp(bounds.0, bounds.1) as i64).to_be_bytes()
    });
    let mut text = [b'='; 24];
    let written = STANDARD.encode_slice(pair.as_flattened(), &mut text);
    debug_assert_eq!(written, Ok(text.len()));
    whole::visible(&text)
}

/// The deadline in epoch milliseconds, rounded down, but at least one ahead of the wall clock's own millisecond.
fn millis_of_deadline(remaining: Duration, wall: SystemTime, latest: u64) -> u64 {
    let wall = nanos_since_epoch(wall);
    let deadline = wall + remaining.as_nanos().cast_signed();
    let soonest = wall.div_euclid(NANOS_PER_MILLI) + 1;
    let millis = deadline.div_euclid(NANOS_PER_MILLI).max(soonest);
    millis.clamp(1, latest.into()) as u64
}
