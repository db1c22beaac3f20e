//! The values of a JSON document, each with its place: what proto3's JSON form allows for a number, a duration, a code.

use std::time::Duration;

use mamparo_core::grpc::Code;
use serde_json::{Map, Value};

use super::ServiceConfigError;
use super::error::join;

/// As many notes on what is ignored as are kept.
const MAX_IGNORED: usize = 100;

type Result<T> = std::result::Result<T, ServiceConfigError>;

/// A value, and where it stands.
pub(super) struct Node<'a> {
    pub(super) path: String,
    value: &'a Value,
}

/// The fields of an object, of which some have been read.
pub(super) struct Fields<'a> {
    pub(super) path: String,
    map: &'a Map<String, Value>,
    read: Vec<String>,
}

impl<'a> Node<'a> {
    pub(super) fn document(value: &'a Value) -> Self {
        Self {
            path: String::new(),
            value,
        }
    }

    pub(super) fn refuse<T>(&self, reason: &str) -> Result<T> {
        Err(ServiceConfigError::new(&self.path, self.value, reason))
    }

    pub(super) fn fields(self) -> Result<Fields<'a>> {
        match self.value {
            Value::Object(map) => Ok(Fields {
                path: self.path,
                map,
                read: Vec::new(),
            }),
            _ => self.refuse("must be an object"),
        }
    }

    pub(super) fn items(&self) -> Result<impl Iterator<Item = Node<'a>>> {
        let Value::Array(items) = self.value else {
            return self.refuse("must be a list");
        };
        let path = self.path.clone();
        Ok(items.iter().enumerate().map(move |(at, value)| Node {
            path: format!("{path}[{at}]"),
            value,
        }))
    }

    pub(super) fn text(&self) -> Result<&'a str> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => self.refuse("must be a string"),
        }
    }

    /// A number, which may also stand in a string.
    pub(super) fn number(&self) -> Result<f64> {
        let number = match self.value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        number.map_or_else(|| self.refuse("must be a number"), Ok)
    }

    /// A whole number from 0 on.
    pub(super) fn whole(&self) -> Result<u32> {
        let number = self.number()?;
        if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole and within u32, as was just seen"
            )]
            return Ok(number as u32);
        }
        self.refuse("must be a whole number, and not negative")
    }

    /// Seconds with up to nine decimals and an `s`, as in `0.1s`.
    pub(super) fn duration(&self) -> Result<Duration> {
        let duration = self.text().ok().and_then(seconds);
        let reason =
            "must be seconds with up to 9 decimals and an s, such as \"0.1s\", and not negative";
        duration.map_or_else(|| self.refuse(reason), Ok)
    }

    /// A status code, by its name in any case or by its number.
    pub(super) fn code(&self) -> Result<Code> {
        let code = match self.value {
            Value::String(name) => Code::named(name),
            Value::Number(number) => {
                let number = number
                    .as_u64()
                    .and_then(|number| usize::try_from(number).ok());
                number.and_then(|number| Code::ALL.get(number).copied())
            }
            _ => None,
        };
        let reason = "must be a status of gRPC: its name, such as \"UNAVAILABLE\", or its number from 0 to 16";
        code.map_or_else(|| self.refuse(reason), Ok)
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let text = text.strip_suffix('s')?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    // `parse` would take a sign.
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 9 {
        return None;
    }
    let nanos = format!("{decimals:0<9}").parse().ok()?;
    Some(Duration::new(whole.parse().ok()?, nanos))
}

impl<'a> Fields<'a> {
    /// The field of that name, if it is there; proto3 reads `max_attempts` as `maxAttempts`, and null as absent.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<Node<'a>>> {
        let snake = snake(name);
        let spelled = [name, snake.as_str()];
        let there = spelled
            .into_iter()
            .filter_map(|name| self.map.get_key_value(name));
        let mut found: Vec<_> = there.collect();
        if snake == name {
            found.truncate(1);
        }
        self.read
            .extend(found.iter().map(|(name, _)| (*name).clone()));
        found.retain(|(_, value)| !value.is_null());
        let path = join(&self.path, name);
        match found.as_slice() {
            [] => Ok(None),
            [(_, value)] => Ok(Some(Node { path, value })),
            [_, (_, value), ..] => {
                let reason = "is there twice, spelled in two ways: leave one out";
                Err(ServiceConfigError::new(&path, value, reason))
            }
        }
    }

    /// The field of that name, which must be there.
    pub(super) fn required(&mut self, name: &str) -> Result<Node<'a>> {
        let field = self.take(name)?;
        field.ok_or_else(|| {
            let path = join(&self.path, name);
            ServiceConfigError::new(&path, "(nothing)", "is missing, and must be there")
        })
    }

    /// Notes the fields that nobody has read.
    pub(super) fn ignore_rest(self, ignored: &mut Vec<String>) {
        for name in self.map.keys().filter(|name| !self.read.contains(name)) {
            note(
                ignored,
                format!("{}: is not known here", join(&self.path, name)),
            );
        }
    }
}

/// Notes something that is not obeyed.
pub(super) fn note(ignored: &mut Vec<String>, text: String) {
    if ignored.len() < MAX_IGNORED {
        ignored.push(text);
    }
}

/// `maxAttempts` as `max_attempts`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
