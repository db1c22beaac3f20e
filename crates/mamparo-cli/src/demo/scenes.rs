//! Which operations are worth drawing.

use mamparo_telemetry::semconv::{DEPENDENCY, RPC_METHOD};
use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::trace::SpanData;

use crate::trace::{Kept, is_operation, text};

/// What is drawn, if it happened: a title, and the dependency that was resent to.
const SCENES: [(&str, &str); 4] = [
    (
        "An order. The payment provider charges it and loses its answer; the key makes the resend safe:",
        "psp",
    ),
    ("A page. The catalog fails first:", "catalog"),
    ("A page. Its reviews come too late:", "reviews"),
    (
        "A price, over gRPC. The service is unavailable, and says when to come back:",
        "pricing",
    ),
];

/// An operation that is drawn.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) title: &'static str,
    pub(super) root: &'a SpanData,
}

/// Picks, for each title, an operation in which that dependency was sent to more than once.
pub(super) fn scenes(kept: &Kept) -> Vec<Scene<'_>> {
    let roots = kept.roots();
    let scenes = SCENES.into_iter().filter_map(|(title, dependency)| {
        let resent = |root: &&&SpanData| {
            let operations = within(kept, root).into_iter();
            operations
                .filter(|span| is_operation(span))
                .filter(|span| text(span, DEPENDENCY) == Some(dependency))
                .any(|span| kept.attempts(span).len() > 1)
        };
        let root = roots.iter().find(resent)?;
        Some(Scene { title, root })
    });
    scenes.collect()
}

/// Returns how many services took part in the trace of an order: whoever called, and each server that wrote a span.
pub(super) fn services(kept: &Kept) -> usize {
    let order = scenes(kept).into_iter().next();
    let Some(order) = order else { return 0 };
    let spans = within(kept, order.root);
    let servers = spans
        .iter()
        .filter(|span| span.span_kind == SpanKind::Server);
    1 + servers.count()
}

/// Returns how many spans there are of the call that asked for a price, and of its attempts.
pub(super) fn price(kept: &Kept) -> (usize, usize) {
    let priced = |span: &&SpanData| text(span, RPC_METHOD) == Some("shop.v1.Prices/Get");
    let calls = kept
        .spans
        .iter()
        .filter(priced)
        .filter(|span| is_operation(span));
    let attempts = calls.clone().map(|call| kept.attempts(call).len());
    (calls.count(), attempts.sum())
}

/// Returns all spans of a root's trace.
fn within<'a>(kept: &'a Kept, root: &SpanData) -> Vec<&'a SpanData> {
    let trace = root.span_context.trace_id();
    let same = |span: &&SpanData| span.span_context.trace_id() == trace;
    kept.spans.iter().filter(same).collect()
}
