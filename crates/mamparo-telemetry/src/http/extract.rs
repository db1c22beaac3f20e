//! The caller's span, read from a request's headers.

use std::str::FromStr;

use http::{HeaderMap, HeaderName};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use opentelemetry::{Context, global};

use super::propagate::{LEN, Propagation, TRACEPARENT, TRACESTATE};

/// The flags that W3C Trace Context defines: sampled, and random trace id.
const DEFINED: u8 = 0x03;

impl Propagation {
    /// Reads the caller's context; none where the request carries none that is well formed.
    ///
    /// `ask` says whether to look at the global propagator anew.
    pub(crate) fn extract(&self, ask: bool, headers: &HeaderMap) -> Option<Context> {
        let with = |propagator: &dyn TextMapPropagator| Some(propagator.extract(&Headers(headers)));
        match self {
            Self::Given(propagator) => with(&**propagator),
            Self::Global(global) if global.does_more(ask) => global::get_text_map_propagator(with),
            Self::Global(_) => {
                let caller = read_w3c(headers)?;
                Some(Context::map_current(|current| {
                    current.with_remote_span_context(caller)
                }))
            }
        }
    }
}

/// Headers as a propagator sees them.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// Reads `traceparent` and `tracestate` (W3C Trace Context level 2, §3.2 and §3.3).
fn read_w3c(headers: &HeaderMap) -> Option<SpanContext> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let value = values.next()?;
    // With two of them nobody knows which is meant: the trace begins anew.
    if values.next().is_some() {
        return None;
    }
    let (trace, span, flags) = read_parent(value.as_bytes())?;
    Some(SpanContext::new(
        trace,
        span,
        flags,
        true,
        read_state(headers),
    ))
}

/// `00-{trace id}-{span id}-{flags}`; later versions may have more after that.
pub(crate) fn read_parent(value: &[u8]) -> Option<(TraceId, SpanId, TraceFlags)> {
    let (known, more) = value.split_at_checked(LEN)?;
    if [known[2], known[35], known[52]] != *b"---" {
        return None;
    }
    let version = u8::from_be_bytes(hex(&known[..2])?);
    let is_whole = match version {
        0x00 => more.is_empty(),
        0xff => false,
        _ => more.is_empty() || more[0] == b'-',
    };
    let trace = TraceId::from_bytes(hex(&known[3..35])?);
    let span = SpanId::from_bytes(hex(&known[36..52])?);
    let [flags] = hex(&known[53..])?;
    let is_valid = is_whole && trace != TraceId::INVALID && span != SpanId::INVALID;
    is_valid.then(|| (trace, span, TraceFlags::new(flags & DEFINED)))
}

/// Lower-case digits only.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, _) = digits.as_chunks();
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

/// One that makes no sense is dropped, and the trace goes on.
fn read_state(headers: &HeaderMap) -> TraceState {
    let values = headers.get_all(&TRACESTATE).iter();
    let lists: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    if lists.is_empty() {
        return TraceState::NONE;
    }
    TraceState::from_str(&lists.join(",")).unwrap_or(TraceState::NONE)
}
