use super::forms::*;

fn told(text: &str) -> Result<Remaining, Malformed> {
    read(&DeadlineHeader::grpc_timeout(), text)
}

fn written(remaining: Duration) -> String {
    write(&DeadlineHeader::grpc_timeout(), remaining)
}

/// GT-01, GT-02, GT-03, GT-04
#[test]
fn every_unit_is_read() {
    assert_eq!(told("1S"), Ok(seconds(1)));
    assert_eq!(
        told("00000001n"),
        Ok(Remaining::For(Duration::from_nanos(1)))
    );
    assert_eq!(told("10u"), Ok(Remaining::For(Duration::from_micros(10))));
    assert_eq!(told("13m"), Ok(millis(13)));
    assert_eq!(told("1M"), Ok(seconds(60)));
    assert_eq!(told("3H"), Ok(seconds(10_800)));
    assert_eq!(told("99999999S"), Ok(seconds(99_999_999)));
}

/// GT-05, P-A5
#[test]
fn the_longest_timeout_does_not_overflow() {
    assert_eq!(told("99999999H"), Ok(seconds(359_999_996_400)));
    assert_eq!(told("2562048H"), Ok(seconds(2_562_048 * 3_600)));
}

/// GT-06, DH-03
#[test]
fn zero_is_already_expired() {
    for zero in ["0S", "0n", "00000000S", "0H"] {
        assert_eq!(told(zero), Ok(Remaining::Expired), "{zero}");
    }
}

/// GT-07, GT-08, GT-09, GT-10, GT-11, GT-15, P-A5
#[test]
fn anything_but_digits_and_one_unit_is_malformed() {
    let texts = [
        "000000000S",
        "123456789S",
        "",
        "S",
        "1",
        "1234",
        "1s",
        "1h",
        "1d",
        "1x",
        "5x",
        "1SS",
        "1ux",
        "n1",
        "82f",
        "-1S",
        "-1u",
        "+5S",
        "+100m",
        "1e1S",
        "1.5S",
        "1_0S",
        "0x1S",
        "1S,2S",
        "1S;q=1",
        "٣S",
        "1é",
        "é",
    ];
    refuses(&DeadlineHeader::grpc_timeout(), texts);
    refuses(
        &DeadlineHeader::grpc_timeout(),
        [&b"1\xff"[..], b"\xff", b"\xc3S"],
    );
}

/// GT-13, P-A5
#[test]
fn space_is_trimmed_around_a_timeout_and_refused_inside() {
    for text in [" 1S", "1S ", "\t 1S \t"] {
        assert_eq!(told(text), Ok(seconds(1)), "{text:?}");
    }
    refuses(
        &DeadlineHeader::grpc_timeout(),
        ["1 S", "1\tS", "5 S", "1 1S", " ", "\t"],
    );
}

/// GE-01, GE-02, GE-03, GE-04, GE-05, GE-06, P-A4; rounded down where grpc-go rounds up
#[test]
fn the_finest_unit_that_fits_eight_digits_is_written_rounded_down() {
    let day = Duration::from_secs(86_400);
    let cases = [
        (Duration::from_nanos(12_345_678), "12345678n"),
        (Duration::from_nanos(123_456_789), "123456u"),
        (Duration::from_micros(123_456_789), "123456m"),
        (Duration::from_millis(123_456_789), "123456S"),
        (Duration::from_secs(123_456_789), "2057613M"),
        (Duration::from_secs(123_456_789 * 60), "2057613H"),
        (Duration::from_nanos(99_999_999), "99999999n"),
        (Duration::from_nanos(100_000_000), "100000u"),
        (Duration::from_millis(1_500), "1500000u"),
        (Duration::from_secs(30), "30000000u"),
        (Duration::from_secs(3_600), "3600000m"),
        (day, "86400000m"),
    ];
    for (remaining, text) in cases {
        assert_eq!(written(remaining), text, "{remaining:?}");
    }
}

/// GE-07, GE-08, P-A4
#[test]
fn the_ends_of_the_range_are_written_without_zero_or_panic() {
    assert_eq!(written(Duration::ZERO), "1n");
    assert_eq!(written(Duration::from_nanos(1)), "1n");
    assert_eq!(written(Duration::MAX), "99999999H");
}

/// GE-10
#[test]
fn the_coarse_values_of_other_implementations_are_read() {
    assert_eq!(told("27000H"), Ok(seconds(27_000 * 3_600)));
    assert_eq!(told("1H"), Ok(seconds(3_600)));
}
