use proptest::prelude::*;

use super::forms::*;

/// Durations of every magnitude, up to the longest.
fn durations() -> impl Strategy<Value = Duration> {
    let of = |bits: u32| {
        (any::<u64>(), 0..1_000_000_000_u32)
            .prop_map(move |(secs, nanos)| Duration::new(secs >> bits, nanos))
    };
    prop_oneof![
        of(64 - 40),
        of(0),
        of(64 - 4),
        (0..2_000_000_000_u64).prop_map(Duration::from_nanos),
        (0..3_u64).prop_map(Duration::from_nanos),
        Just(Duration::MAX),
    ]
}

fn walls() -> impl Strategy<Value = SystemTime> {
    prop_oneof![
        Just(UNIX_EPOCH),
        (0..4_000_000_000_u64, 0..1_000_000_000_u32)
            .prop_map(|(secs, nanos)| UNIX_EPOCH + Duration::new(secs, nanos)),
    ]
}

/// The largest step between two values of a form, at this duration.
fn unit_of(header: &DeadlineHeader, remaining: Duration) -> Duration {
    match header.name().as_str() {
        "grpc-timeout" => {
            let steps = [1, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000_u64];
            let fits = |step: &u64| remaining.as_nanos() / u128::from(*step) <= 99_999_999;
            Duration::from_nanos(steps.into_iter().find(fits).unwrap_or(3_600_000_000_000))
        }
        "finagle-ctx-com.twitter.finagle.deadline" => Duration::from_nanos(1),
        "in-seconds" => Duration::from_secs(1),
        _ => Duration::from_millis(1),
    }
}

/// The longest that every form can hold: a value past it is written shorter.
const HELD_BY_ALL: Duration = Duration::from_secs(9_999_999);

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), wall in walls()) {
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            for header in every_form() {
                if let Ok(Remaining::For(time)) = header.read(&value, wall) {
                    prop_assert!(time > Duration::ZERO);
                }
            }
        }
    }

    #[test]
    fn what_nearly_has_a_form_does_not_make_a_reader_panic(
        text in prop_oneof![
            "[+-]?[0-9]{0,22}[HMSmunZ.]?",
            "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,12})?(Z|[+-][0-9]{2}:[0-9]{2})?",
            "[A-Za-z0-9+/]{22}==",
        ],
        wall in walls(),
    ) {
        let value = HeaderValue::from_str(&text).unwrap();
        for header in every_form() {
            let _told = header.read(&value, wall);
        }
    }

    /// GE-09, P-A4
    #[test]
    fn what_is_written_reads_as_no_more_than_remains(remaining in durations(), wall in walls()) {
        for header in every_form() {
            let value = header.write(remaining, wall);
            let Ok(Remaining::For(told)) = header.read(&value, wall) else {
                panic!("{} wrote {value:?}", header.name());
            };
            let unit = unit_of(&header, remaining);
            prop_assert!(told <= remaining.max(unit), "{} wrote {value:?} for {remaining:?}", header.name());
            if remaining <= HELD_BY_ALL {
                prop_assert!(told + unit > remaining, "{} wrote {value:?} for {remaining:?}", header.name());
            }
        }
    }

    /// P-A4, DH-05
    #[test]
    fn a_written_value_is_never_zero_nor_too_long(remaining in durations(), wall in walls()) {
        for header in every_form() {
            let value = header.write(remaining, wall);
            let text = value.to_str().unwrap();
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            prop_assert!(header.name() == "finagle-ctx-com.twitter.finagle.deadline" || digits.bytes().any(|digit| digit != b'0'));
            let longest = match header.name().as_str() {
                "grpc-timeout" => 9,
                "connect-timeout-ms" => 10,
                "at" | "finagle-ctx-com.twitter.finagle.deadline" => 24,
                _ => 19,
            };
            prop_assert!(text.len() <= longest, "{text}");
        }
    }

    #[test]
    fn a_canonical_value_survives_reading_and_writing(count in 1..=99_999_999_u64, unit in 0..6_usize) {
        let header = DeadlineHeader::grpc_timeout();
        let text = format!("{count}{}", ["n", "u", "m", "S", "M", "H"][unit]);
        let Ok(Remaining::For(time)) = read(&header, &text) else { panic!("{text}") };
        let again = read(&header, write(&header, time));
        prop_assert_eq!(again, Ok(Remaining::For(time)), "{}", text);
    }
}

#[test]
fn a_megabyte_of_anything_is_malformed_at_once() {
    for byte in *b"0 9SZ=-+\xff" {
        let value = HeaderValue::from_bytes(&vec![byte; 1 << 20]).unwrap();
        for header in every_form() {
            assert!(header.read(&value, wall()).is_err(), "{}", header.name());
        }
    }
}
