use super::forms::*;

fn rfc3339() -> DeadlineHeader {
    DeadlineHeader::rfc3339("x-request-deadline").unwrap()
}

fn epoch_millis() -> DeadlineHeader {
    DeadlineHeader::epoch_millis("x-request-deadline").unwrap()
}

#[test]
fn only_times_of_day_are_absolute() {
    let absolute = every_form().into_iter().filter(DeadlineHeader::is_absolute);
    let names: Vec<_> = absolute.map(|header| header.name().clone()).collect();
    assert_eq!(
        names,
        [
            "finagle-ctx-com.twitter.finagle.deadline",
            "at-millis",
            "at"
        ]
    );
}

#[test]
fn epoch_milliseconds_are_counted_from_the_wall_clock() {
    assert_eq!(read(&epoch_millis(), "1700000001500"), Ok(millis(1_500)));
    assert_eq!(
        read(&epoch_millis(), "1700000000000"),
        Ok(Remaining::Expired)
    );
    assert_eq!(
        read(&epoch_millis(), "1699999999999"),
        Ok(Remaining::Expired)
    );
    assert_eq!(read(&epoch_millis(), "0"), Ok(Remaining::Expired));
    let longest = 9_999_999_999_999_999_999 - 1_700_000_000_000;
    assert_eq!(
        read(&epoch_millis(), "9999999999999999999"),
        Ok(millis(longest))
    );
}

/// RFC 3339 sections 5.6 and 5.8; 1 700 000 000 is 2023-11-14T22:13:20Z
#[test]
fn a_time_is_read_with_a_fraction_and_an_offset() {
    let cases = [
        ("2023-11-14T22:13:22Z", seconds(2)),
        ("2023-11-14T22:13:20.5Z", millis(500)),
        ("2023-11-14T22:13:20.001Z", millis(1)),
        (
            "2023-11-14T22:13:20.000000001Z",
            Remaining::For(Duration::from_nanos(1)),
        ),
        (
            "2023-11-14T22:13:20.0000000019999Z",
            Remaining::For(Duration::from_nanos(1)),
        ),
        ("2023-11-14T22:13:22+00:00", seconds(2)),
        ("2023-11-14T22:13:22-00:00", seconds(2)),
        ("2023-11-15T00:13:22+02:00", seconds(2)),
        ("2023-11-15T03:43:22.25+05:30", millis(2_250)),
        ("2023-11-14T14:13:22-08:00", seconds(2)),
        ("2023-11-14T22:13:20Z", Remaining::Expired),
        ("2023-11-14T22:13:22+02:00", Remaining::Expired),
        ("1970-01-01T00:00:00+23:59", Remaining::Expired),
        ("2024-02-29T00:00:00Z", seconds(9_164_800)),
        ("2023-12-31T23:59:60Z", seconds(4_067_199)),
        ("9999-12-31T23:59:59.999Z", millis(251_702_300_799_999)),
    ];
    for (text, remaining) in cases {
        assert_eq!(read(&rfc3339(), text), Ok(remaining), "{text}");
    }
}

/// DH-04
#[test]
fn a_time_in_any_other_form_is_malformed() {
    let texts = [
        "",
        "1700000000",
        "2023-11-14",
        "2023-11-14T22:13:20",
        "2023-11-14 22:13:20Z",
        "2023-11-14t22:13:20z",
        "2023-11-14T22:13:20.Z",
        "2023-11-14T22:13:20.5",
        "2023-11-14T22:13:20ZjunkZ",
        "2023-11-14T22:13:20,5Z",
        "2023-11-14T22:13:20+2:00",
        "2023-11-14T22:13:20+0200",
        "2023-11-14T22:13:20+24:00",
        "2023-11-14T22:13:20+00:60",
        "2023-11-14T22:13:20+00:00Z",
        "2023-11-14T22:13:20 Z",
        "2023-11-14T22:13Z",
        "2023-11-14T24:13:20Z",
        "2023-11-14T22:60:20Z",
        "2023-11-14T22:13:61Z",
        "2023-02-29T22:13:20Z",
        "2023-13-14T22:13:20Z",
        "2023-00-14T22:13:20Z",
        "2023-11-00T22:13:20Z",
        "2023-11-31T22:13:20Z",
        "+2023-11-14T22:13:20Z",
        "12023-11-14T22:13:20Z",
        "0001-01-01T00:00:00Z",
        "2023-11-14T22:13:+0Z",
        "Tue, 14 Nov 2023 22:13:20 GMT",
        "2023-11-14T22:13:2éZ",
        "2023-11-14T22:13:20é",
    ];
    refuses(&rfc3339(), texts);
}

#[test]
fn a_time_is_written_in_utc_with_milliseconds_rounded_down() {
    let remaining = Duration::from_micros(1_500_999);
    assert_eq!(write(&rfc3339(), remaining), "2023-11-14T22:13:21.500Z");
    assert_eq!(write(&epoch_millis(), remaining), "1700000001500");
    assert_eq!(write(&rfc3339(), Duration::MAX), "9999-12-31T23:59:59.999Z");
    assert_eq!(write(&epoch_millis(), Duration::MAX), "9223372036854775807");
}

#[test]
fn less_than_a_millisecond_is_written_as_the_next_one() {
    let wall = wall() + Duration::from_micros(1_700);
    for remaining in [0, 1, 250, 1_299].map(Duration::from_micros) {
        let value = epoch_millis().write(remaining, wall);
        assert_eq!(value, "1700000000002");
    }
}

/// DH-07
#[test]
fn finagles_deadlines_are_read() {
    let header = DeadlineHeader::finagle();
    assert_eq!(header.name(), "finagle-ctx-com.twitter.finagle.deadline");
    assert_eq!(
        read(&header, "AAAAAAAAAAAAAAAAO5rKAA=="),
        Ok(Remaining::Expired)
    );
    assert_eq!(read(&header, "F5ec/jYqAAAXl5z/YC/yAA=="), Ok(seconds(5)));
    assert_eq!(
        read(&header, "F5ec/jYqAAD//////////w=="),
        Ok(Remaining::Expired),
        "one nanosecond before 1970"
    );
    assert_eq!(
        write(&header, Duration::from_secs(5)),
        "F5ec/jYqAAAXl5z/YC/yAA=="
    );
    assert_eq!(write(&header, Duration::MAX), "F5ec/jYqAAB//////////w==");
}

/// DH-04
#[test]
fn what_is_not_base64_of_sixteen_bytes_is_malformed() {
    let texts = [
        "",
        "5",
        "F5ec/jYqAAAXl5z/YC/yAA",
        "F5ec/jYqAAAXl5z/YC/yAA=",
        "F5ec/jYqAAAXl5z/YC/yAAA=",
        "F5ec/jYqAAAXl5z/YC/yAAAA",
        "F5ec/jYqAAAXl5z/YC/yAB==",
        "F5ec_jYqAAAXl5z_YC_yAA==",
        "F5ec/jYqAAAXl5z/YC/y A==",
        "F5ec/jYqAAAXl5z/YC/yAA==AAAA",
        "========================",
    ];
    refuses(&DeadlineHeader::finagle(), texts);
}

#[test]
fn a_wall_clock_that_is_set_before_1970_is_no_trouble() {
    let wall = UNIX_EPOCH - Duration::from_secs(10);
    let value = HeaderValue::from_static("1000");
    assert_eq!(epoch_millis().read(&value, wall), Ok(seconds(11)));
    assert_eq!(epoch_millis().write(Duration::from_secs(12), wall), "2000");
    assert_eq!(epoch_millis().write(Duration::from_secs(1), wall), "1");
}

#[test]
fn the_furthest_wall_clocks_do_not_overflow() {
    let far = Duration::from_secs(i64::MAX as u64);
    let walls = [UNIX_EPOCH.checked_add(far), UNIX_EPOCH.checked_sub(far)];
    let value = HeaderValue::from_static("9999999999999999999");
    for wall in walls.into_iter().flatten() {
        for header in every_form() {
            for remaining in [Duration::ZERO, Duration::MAX] {
                assert!(!header.write(remaining, wall).is_empty());
            }
        }
        assert!(epoch_millis().read(&value, wall).is_ok());
    }
}
