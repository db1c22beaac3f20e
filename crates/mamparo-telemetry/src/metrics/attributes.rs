//! Attributes of one measurement, without an allocation.

use opentelemetry::{Key, KeyValue, Value};

/// Up to `N` attributes, on the stack.
#[derive(Debug)]
pub(crate) struct Attributes<const N: usize> {
    list: [KeyValue; N],
    len: usize,
}

impl<const N: usize> Attributes<N> {
    pub(crate) fn new() -> Self {
        Self {
            list: std::array::from_fn(|_| KeyValue::new(Key::from_static_str(""), false)),
            len: 0,
        }
    }

    /// Adds one; beyond `N` it is left out.
    pub(crate) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.push(key, value);
        self
    }

    /// Adds one; beyond `N` it is left out.
    pub(crate) fn push(&mut self, key: &'static str, value: impl Into<Value>) {
        debug_assert!(self.len < N, "there is room for every attribute");
        if let Some(place) = self.list.get_mut(self.len) {
            *place = KeyValue::new(key, value);
            self.len += 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[KeyValue] {
        &self.list[..self.len]
    }
}
