//! The span's identity, written into the request's headers.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Injector, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt, TraceFlags};
use opentelemetry::{Context, global};

use crate::source::Started;

pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(super) static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The flags that W3C Trace Context defines: sampled, and random trace id. Others are not passed on.
const DEFINED: TraceFlags = TraceFlags::new(0x03);

/// How long a `traceparent` is.
pub(crate) const LEN: usize = 55;

/// How many bytes values share: as long as one of them is there, so are all.
pub(super) const BLOCK_LEN: usize = 32 * LEN;

/// How a span's identity is written.
#[derive(Clone)]
pub(crate) enum Propagation {
    /// With the global propagator if one was set that does more than W3C Trace Context, else by ourselves.
    Global(Global),
    Given(Arc<dyn TextMapPropagator + Send + Sync>),
}

/// Remembers what kind the global propagator is, so that its lock is not taken at every call.
#[derive(Debug, Default)]
pub(crate) struct Global {
    does_more: AtomicBool,
}

impl Propagation {
    pub(crate) fn global() -> Self {
        Self::Global(Global::default())
    }

    /// Writes the identity; what the request carried in those fields is replaced.
    ///
    /// `ask` says whether to look at the global propagator anew.
    pub(crate) fn inject(&self, ask: bool, span: &Started, headers: &mut HeaderMap) {
        match self {
            Self::Given(propagator) => inject_with(&**propagator, span, headers),
            Self::Global(global) if global.does_more(ask) => {
                global::get_text_map_propagator(|propagator| {
                    inject_with(propagator, span, headers);
                });
            }
            Self::Global(_) => span.with_identity(|identity| write_w3c(identity, headers)),
        }
    }
}

impl Global {
    pub(super) fn does_more(&self, ask: bool) -> bool {
        if ask {
            let does_more = global::get_text_map_propagator(|propagator| {
                let mut fields = propagator.fields();
                fields.any(|field| TRACEPARENT != field && TRACESTATE != field)
            });
            self.does_more.store(does_more, Ordering::Relaxed);
        }
        self.does_more.load(Ordering::Relaxed)
    }
}

impl Clone for Global {
    fn clone(&self) -> Self {
        Self {
            does_more: AtomicBool::new(self.does_more.load(Ordering::Relaxed)),
        }
    }
}

fn inject_with(propagator: &dyn TextMapPropagator, span: &Started, headers: &mut HeaderMap) {
    for field in propagator.fields() {
        headers.remove(field);
    }
    let mut headers = Headers(headers);
    match span.context() {
        Some(context) => propagator.inject_context(context, &mut headers),
        None => {
            let context = span.with_identity(|identity| {
                Context::map_current(|current| current.with_remote_span_context(identity.clone()))
            });
            propagator.inject_context(&context, &mut headers);
        }
    }
}

/// Headers as a propagator sees them. Replaces, and writes nothing that is empty (W3C Trace Context §3.3.1.4).
struct Headers<'a>(&'a mut HeaderMap);

impl Injector for Headers<'_> {
    fn set(&mut self, key: &str, value: String) {
        let name = HeaderName::from_bytes(key.as_bytes());
        let value = HeaderValue::try_from(value).ok();
        if let (Ok(name), Some(value)) = (name, value.filter(|value| !value.is_empty())) {
            let _full = self.0.try_insert(name, value);
        }
    }
}

/// Writes `traceparent` and `tracestate` (W3C Trace Context level 2, §3.2 and §3.3).
fn write_w3c(identity: &SpanContext, headers: &mut HeaderMap) {
    // What the request carried belongs to the traceparent that is replaced here.
    headers.remove(&TRACESTATE);
    let state = identity.trace_state().header();
    if !state.is_empty()
        && let Ok(state) = HeaderValue::try_from(state)
    {
        let _full = headers.try_insert(TRACESTATE.clone(), state);
    }
    if let Ok(value) = HeaderValue::from_maybe_shared(kept(&traceparent(identity)))
        && headers.try_insert(TRACEPARENT, value).is_err()
    {
        // A full map takes no value, not even in place of another, which is stale.
        headers.remove(TRACEPARENT);
    }
}

/// Puts a value into a block that many values share; one that they have all left is used again.
///
/// A value of its own for each request would be the one thing that a span which is not sampled allocates.
pub(super) fn kept(value: &[u8; LEN]) -> Bytes {
    thread_local! {
        static BLOCK: RefCell<BytesMut> = RefCell::default();
    }
    let kept = BLOCK.try_with(|block| {
        let mut block = block.borrow_mut();
        if block.capacity() < LEN {
            block.reserve(BLOCK_LEN);
        }
        block.extend_from_slice(value);
        block.split().freeze()
    });
    // At the thread's end there is no block any more.
    kept.unwrap_or_else(|_| Bytes::copy_from_slice(value))
}

/// `00-{trace id}-{span id}-{flags}`, lower-case hexadecimal.
pub(crate) fn traceparent(identity: &SpanContext) -> [u8; LEN] {
    let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
    write_hex(&mut text[3..35], &identity.trace_id().to_bytes());
    write_hex(&mut text[36..52], &identity.span_id().to_bytes());
    let flags = identity.trace_flags() & DEFINED;
    write_hex(&mut text[53..55], &[flags.to_u8()]);
    text
}

fn write_hex(text: &mut [u8], bytes: &[u8]) {
    for (pair, byte) in text.as_chunks_mut().0.iter_mut().zip(bytes) {
        *pair = PAIRS[usize::from(*byte)];
    }
}

/// Each byte's two digits.
static PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [digits[byte >> 4], digits[byte & 0x0f]];
        byte += 1;
    }
    pairs
};

impl fmt::Debug for Propagation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global(_) => f.write_str("Global"),
            Self::Given(propagator) => f.debug_tuple("Given").field(propagator).finish(),
        }
    }
}
