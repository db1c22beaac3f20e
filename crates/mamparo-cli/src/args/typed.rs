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
        if text == "none" {
            return Ok(Self::None);
        }
        if let Ok(number) = text.parse::<u64>() {
            let millis = number.saturating_mul(1_000);
            return Err(format!(
                "it has no unit: write {number}s or {millis}ms, or `none`"
            ));
        }
        match humantime::parse_duration(text) {
            Ok(Duration::ZERO) => {
                Err("it must be longer than zero: for no limit write `none`".to_owned())
            }
            Ok(duration) => Ok(Self::Within(duration)),
            Err(error) => Err(format!("{error}: write 2s, 500ms or 1m 30s, or `none`")),
        }
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
