//! Whole numbers of a unit: relative milliseconds and seconds, and the digits that every form is made of.

use std::time::Duration;

use http::HeaderValue;

use super::told::{Malformed, Remaining};

/// More digits than any sensible deadline has, few enough to fit a `u64` whatever they are.
pub(super) const MAX_DIGITS: usize = 19;

/// The largest number that is written: peers count in signed 64 bits.
pub(super) const LARGEST: u64 = i64::MAX.cast_unsigned();

const CONNECT_DIGITS: usize = 10;

/// A relative form: so many milliseconds or seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    unit: Unit,
    digits: usize,
    malformed: Malformed,
    zero: Remaining,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Millis,
    Seconds,
}

impl Whole {
    pub(super) const MILLIS: Self = Self {
        unit: Unit::Millis,
        digits: MAX_DIGITS,
        malformed: Malformed::expected("whole milliseconds, 1 to 19 digits"),
        zero: Remaining::Expired,
    };

    pub(super) const SECONDS: Self = Self {
        unit: Unit::Seconds,
        malformed: Malformed::expected("whole seconds, 1 to 19 digits"),
        ..Self::MILLIS
    };

    pub(super) const CONNECT: Self = Self {
        digits: CONNECT_DIGITS,
        malformed: Malformed::expected("whole milliseconds, 1 to 10 digits"),
        ..Self::MILLIS
    };

    pub(super) const fn zero_is_infinite(self) -> Self {
        Self {
            zero: Remaining::Infinite,
            ..self
        }
    }

    pub(super) fn read(&self, text: &[u8]) -> Result<Remaining, Malformed> {
        match digits(text, self.digits).ok_or(self.malformed)? {
            0 => Ok(self.zero),
            count => Ok(Remaining::For(match self.unit {
                Unit::Millis => Duration::from_millis(count),
                Unit::Seconds => Duration::from_secs(count),
            })),
        }
    }

    pub(super) fn write(&self, remaining: Duration) -> HeaderValue {
        let count = match self.unit {
            Unit::Millis => saturate(remaining.as_millis()),
            Unit::Seconds => remaining.as_secs(),
        };
        text(count.clamp(1, self.largest()), None)
    }

    fn largest(&self) -> u64 {
        match self.digits {
            CONNECT_DIGITS => 9_999_999_999,
            _ => LARGEST,
        }
    }
}

/// Reads ASCII digits and nothing else: `u64::from_str` would take a plus sign too.
pub(super) fn digits(text: &[u8], most: usize) -> Option<u64> {
    if text.is_empty() || text.len() > most.min(MAX_DIGITS) {
        return None;
    }
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + u64::from(byte - b'0'))
    })
}

/// Writes a number, and a unit where the form has one, with a single allocation.
pub(super) fn text(mut number: u64, unit: Option<u8>) -> HeaderValue {
    const LONGEST: usize = 21; // 20 digits and a unit
    let mut buffer = [0; LONGEST];
    let mut start = LONGEST;
    if let Some(unit) = unit {
        start -= 1;
        buffer[start] = unit;
    }
    loop {
        start -= 1;
        buffer[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return visible(&buffer[start..]);
        }
    }
}

/// Makes a value of text that we wrote ourselves.
#[expect(
    clippy::expect_used,
    reason = "digits, letters and the signs of a date or of base64 are legal in every field value"
)]
pub(super) fn visible(text: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(text).expect("visible ASCII")
}

pub(super) fn saturate(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
