//! The values that options take, refused while they are parsed if they make no sense.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

/// A time limit, or none where that is spelled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    None,
    Within(Duration),
}

/// A time that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delay(pub(crate) Duration);

/// For how long something is kept; nothing for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep(pub(crate) Option<Duration>);

/// So many in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) count: u32,
    pub(crate) period: Duration,
}

/// A header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
}

/// Where a request's body comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Text(Bytes),
    File(PathBuf),
    Stdin,
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            _ => duration(text, ", or `none`").map(Self::Within),
        }
    }
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "forever" => Ok(Self(None)),
            _ => match duration(text, "") {
                Ok(keep) => Ok(Self(Some(keep))),
                Err(why) => Err(format!("{why}, or `forever`")),
            },
        }
    }
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        duration(text, "").map(Self)
    }
}

/// Reads a duration that is longer than zero; `or` is what else may be written in its place.
fn duration(text: &str, or: &str) -> Result<Duration, String> {
    if let Ok(number) = text.parse::<u64>() {
        let millis = number.saturating_mul(1_000);
        return Err(format!("it has no unit: write {number}s or {millis}ms{or}"));
    }
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) if or.is_empty() => Err("it must be longer than zero".to_owned()),
        Ok(Duration::ZERO) => {
            Err("it must be longer than zero: for no limit write `none`".to_owned())
        }
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}: write 2s, 500ms or 1m 30s{or}")),
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let says = || "write a count and a period, such as 5/s, 100/m or 1/250ms".to_owned();
        let (count, period) = text.split_once('/').ok_or_else(says)?;
        let count: u32 = count.parse().map_err(|_| says())?;
        // `5/s` is five in one second.
        let period = match period.starts_with(|c: char| c.is_ascii_digit()) {
            true => humantime::parse_duration(period),
            false => humantime::parse_duration(&format!("1{period}")),
        };
        let period = period.map_err(|_| says())?;
        if count == 0 || period.is_zero() {
            return Err("it lets nothing pass: both must be above zero".to_owned());
        }
        Ok(Self { count, period })
    }
}

impl FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once(':')
            .ok_or("it has no colon: write 'name: value'")?;
        let name = name.trim();
        Ok(Self {
            name: name
                .parse()
                .map_err(|_| format!("`{name}` can't be the name of a header field"))?,
            value: value
                .trim()
                .parse()
                .map_err(|_| "its value holds a character that no header field may".to_owned())?,
        })
    }
}

impl FromStr for Data {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            None => Ok(Self::Text(Bytes::copy_from_slice(text.as_bytes()))),
            Some("") => Err("@ needs a file's name after it, or - for stdin".to_owned()),
            Some("-") => Ok(Self::Stdin),
            Some(path) => Ok(Self::File(path.into())),
        }
    }
}

/// Takes the address of a collector.
pub(super) fn collector(text: &str) -> Result<String, String> {
    match reqwest::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            Ok(text.to_owned())
        }
        _ => Err("it is no address of a collector: write http://localhost:4317".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_needs_a_unit_and_must_not_be_zero() {
        let refused = |text: &str| Limit::from_str(text).unwrap_err();
        assert!(refused("2").contains("2s or 2000ms"), "{}", refused("2"));
        assert!(refused("0s").contains("longer than zero"));
        assert!(refused("2 fortnights").contains("write 2s"));
        assert!(refused("-1s").contains("write 2s"));
        assert!(refused("99999999999999999999s").contains("write 2s"));
        assert_eq!(
            "500ms".parse(),
            Ok(Limit::Within(Duration::from_millis(500)))
        );
        assert_eq!("none".parse(), Ok(Limit::None));
    }

    #[test]
    fn a_delay_is_a_duration_and_never_none() {
        let refused = |text: &str| Delay::from_str(text).unwrap_err();
        assert_eq!("100ms".parse(), Ok(Delay(Duration::from_millis(100))));
        assert_eq!(refused("5"), "it has no unit: write 5s or 5000ms");
        assert_eq!(refused("0ms"), "it must be longer than zero");
        assert!(refused("none").ends_with("write 2s, 500ms or 1m 30s"));
    }

    #[test]
    fn a_rate_is_a_count_in_a_period() {
        let rate = |count, millis| {
            let period = Duration::from_millis(millis);
            Ok(Rate { count, period })
        };
        assert_eq!("5/s".parse(), rate(5, 1_000));
        assert_eq!("100/m".parse(), rate(100, 60_000));
        assert_eq!("1/250ms".parse(), rate(1, 250));
        for wrong in [
            "5",
            "5/",
            "/s",
            "-1/s",
            "x/s",
            "1.5/s",
            "5/fortnight",
            "5/s/s",
        ] {
            let why = Rate::from_str(wrong).unwrap_err();
            assert!(why.contains("such as 5/s"), "{wrong}: {why}");
        }
        for nothing in ["0/s", "1/0s"] {
            let why = Rate::from_str(nothing).unwrap_err();
            assert!(why.contains("lets nothing pass"), "{nothing}: {why}");
        }
    }

    #[test]
    fn a_header_field_needs_a_colon_a_name_and_a_value_that_can_be_sent() {
        let refused = |text: &str| Field::from_str(text).unwrap_err();
        assert!(refused("accept").contains("no colon"));
        assert!(refused("a b: c").contains("`a b`"));
        assert!(refused("a: b\nc").contains("no header field may"));
        let field = Field::from_str("Accept:  text/html ").unwrap();
        assert_eq!(field.name, "accept");
        assert_eq!(field.value, "text/html");
    }

    #[test]
    fn an_at_sign_names_a_file_and_a_dash_is_stdin() {
        assert_eq!("a@b".parse(), Ok(Data::Text("a@b".into())));
        assert_eq!("@body.json".parse(), Ok(Data::File("body.json".into())));
        assert_eq!("@-".parse(), Ok(Data::Stdin));
        assert!(Data::from_str("@").is_err());
    }
}
