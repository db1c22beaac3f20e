use super::forms::*;

/// DH-03
#[test]
fn zero_is_expired_or_infinite_as_each_form_says() {
    let of = |header: DeadlineHeader| read(&header, "0");
    assert_eq!(
        of(DeadlineHeader::request_timeout_ms()),
        Ok(Remaining::Expired)
    );
    assert_eq!(
        of(DeadlineHeader::connect_timeout_ms()),
        Ok(Remaining::Expired)
    );
    assert_eq!(
        of(DeadlineHeader::envoy_expected_timeout_ms()),
        Ok(Remaining::Infinite)
    );
    assert_eq!(
        of(DeadlineHeader::seconds("t").unwrap()),
        Ok(Remaining::Expired)
    );
    let told_so = DeadlineHeader::seconds("t")
        .unwrap()
        .zero_is_infinite()
        .unwrap();
    assert_eq!(of(told_so), Ok(Remaining::Infinite));
}

#[test]
fn only_a_plain_number_can_have_zero_mean_infinite() {
    for header in [
        DeadlineHeader::grpc_timeout(),
        DeadlineHeader::finagle(),
        DeadlineHeader::epoch_millis("at").unwrap(),
        DeadlineHeader::rfc3339("at").unwrap(),
    ] {
        let error = header.zero_is_infinite().unwrap_err();
        assert_eq!(error.setting(), "deadline header");
    }
}

#[test]
fn milliseconds_and_seconds_are_read_under_any_name() {
    let in_millis = DeadlineHeader::millis("X-YaTaxi-Client-TimeoutMs").unwrap();
    assert_eq!(in_millis.name(), "x-yataxi-client-timeoutms");
    assert_eq!(read(&in_millis, " 0250\t"), Ok(millis(250)));
    let in_seconds = DeadlineHeader::seconds("request-timeout").unwrap();
    assert_eq!(read(&in_seconds, "60"), Ok(seconds(60)));
}

#[test]
fn a_name_that_no_header_can_have_is_refused_with_the_name() {
    let makers = [
        DeadlineHeader::millis,
        DeadlineHeader::seconds,
        DeadlineHeader::epoch_millis,
        DeadlineHeader::rfc3339,
    ];
    for (make, name) in makers.into_iter().zip(["", "a b", "é", "a:"]) {
        assert_eq!(make(name).unwrap_err().value(), name);
    }
}

/// DH-04
#[test]
fn what_is_not_a_plain_number_is_malformed() {
    let texts = [
        "",
        " ",
        "-1",
        "+5",
        "1.5",
        "1e3",
        "1 000",
        "1,000",
        "0x10",
        "10ms",
        "60s",
        "NaN",
        "inf",
        "1_000",
        "٣",
        "18446744073709551616",
        "99999999999999999999999999999999999999999",
    ];
    for header in [
        DeadlineHeader::request_timeout_ms(),
        DeadlineHeader::connect_timeout_ms(),
        DeadlineHeader::envoy_expected_timeout_ms(),
        DeadlineHeader::seconds("in-seconds").unwrap(),
        DeadlineHeader::epoch_millis("at-millis").unwrap(),
    ] {
        refuses(&header, texts);
    }
}

#[test]
fn connect_takes_ten_digits_and_others_nineteen() {
    let connect = DeadlineHeader::connect_timeout_ms();
    assert_eq!(read(&connect, "9999999999"), Ok(millis(9_999_999_999)));
    refuses(&connect, ["10000000000", "00000000001"]);

    let plain = DeadlineHeader::request_timeout_ms();
    assert_eq!(
        read(&plain, "9223372036854775807"),
        Ok(millis(i64::MAX as u64))
    );
    assert_eq!(
        read(&plain, "9999999999999999999"),
        Ok(millis(9_999_999_999_999_999_999))
    );
    let plain = DeadlineHeader::seconds("in-seconds").unwrap();
    assert_eq!(
        read(&plain, "9999999999999999999"),
        Ok(seconds(9_999_999_999_999_999_999))
    );
}

/// DH-05, DH-06
#[test]
fn whole_numbers_are_rounded_down_but_never_to_zero() {
    let in_millis = DeadlineHeader::request_timeout_ms();
    assert_eq!(write(&in_millis, Duration::from_micros(1_999)), "1");
    assert_eq!(write(&in_millis, Duration::from_micros(2_000)), "2");
    assert_eq!(write(&in_millis, Duration::from_nanos(1)), "1");
    assert_eq!(write(&in_millis, Duration::ZERO), "1");
    assert_eq!(
        write(&DeadlineHeader::envoy_expected_timeout_ms(), Duration::ZERO),
        "1"
    );
    let in_seconds = DeadlineHeader::seconds("t").unwrap();
    assert_eq!(write(&in_seconds, Duration::from_millis(2_999)), "2");
    assert_eq!(write(&in_seconds, Duration::from_millis(999)), "1");
}

#[test]
fn the_longest_duration_is_written_as_the_longest_that_fits() {
    let longest = |header: DeadlineHeader| write(&header, Duration::MAX);
    assert_eq!(longest(DeadlineHeader::connect_timeout_ms()), "9999999999");
    assert_eq!(
        longest(DeadlineHeader::request_timeout_ms()),
        "9223372036854775807"
    );
    assert_eq!(
        longest(DeadlineHeader::seconds("t").unwrap()),
        "9223372036854775807"
    );
}
