//! Starting spans.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use mamparo_core::clock::{SystemClock, WallClock};
#[cfg(feature = "durable")]
use opentelemetry::trace::Link;
use opentelemetry::trace::{
    SpanBuilder, SpanContext, SpanId, SpanKind, SpanRef, Status, TraceContextExt, TraceFlags,
    Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue, global};

use super::scope::scope;
use crate::semconv::ERROR_TYPE;

/// The flag by which a trace id says that it is random (W3C Trace Context level 2, §3.2.2.5.2).
const RANDOM: TraceFlags = TraceFlags::new(0x02);

/// Starts spans, with a tracer that was passed in or found.
#[derive(Clone)]
pub(crate) struct Spans {
    tracer: OnceLock<Arc<dyn Starts>>,
    /// Whether the sampler is asked although it refused the span above.
    offers_all: bool,
}

/// A span that was started.
#[derive(Debug)]
pub(crate) enum Started {
    /// It records.
    Recording(Recorded),
    /// It does not, but what we send carries its identity.
    Unsampled {
        identity: SpanContext,
        /// Current inside, where otherwise nothing would say that this trace is not sampled.
        context: Option<Context>,
    },
}

/// A span that records, current in its context.
#[derive(Debug)]
pub(crate) struct Recorded {
    context: Context,
    began: SystemTime,
}

impl Spans {
    /// Asks for the global provider until there is one.
    pub(crate) const fn global() -> Self {
        Self {
            tracer: OnceLock::new(),
            offers_all: false,
        }
    }

    /// Uses this provider.
    pub(crate) fn give<T>(&mut self, provider: &impl TracerProvider<Tracer = T>)
    where
        T: Tracer<Span: Send + Sync + 'static> + Send + Sync + 'static,
    {
        let tracer: Arc<dyn Starts> = Arc::new(provider.tracer_with_scope(scope()));
        self.tracer = OnceLock::from(tracer);
    }

    /// Asks the sampler every time.
    pub(crate) const fn offer_all(&mut self) {
        self.offers_all = true;
    }

    /// Tells whether there is any tracer to ask, see [`Self::start`].
    pub(crate) fn may_start(&self, ask: bool) -> bool {
        ask || self.tracer.get().is_some()
    }

    /// Starts a span below the current one; none without a provider, or where telemetry is suppressed.
    ///
    /// `ask` says whether to ask for a global provider, if none is known.
    /// Below a span that our sampler refused it is not asked again: as a rule it goes by the span above, and most of
    /// the cost is saved. Below any other that is not sampled, `describe` is not called unless it records all the same.
    pub(crate) fn start<Name>(
        &self,
        ask: bool,
        name: impl FnOnce() -> Name,
        kind: SpanKind,
        describe: impl Fn() -> Vec<KeyValue>,
    ) -> Option<Started>
    where
        Name: Into<Cow<'static, str>>,
    {
        self.start_below(ask, None, name, kind, describe)
    }

    /// Starts a span below that of a caller, whose context is not the current one; without one below the current.
    pub(crate) fn start_below<Name>(
        &self,
        ask: bool,
        caller: Option<&Context>,
        name: impl FnOnce() -> Name,
        kind: SpanKind,
        describe: impl Fn() -> Vec<KeyValue>,
    ) -> Option<Started>
    where
        Name: Into<Cow<'static, str>>,
    {
        let builder = || SpanBuilder::from_name(name()).with_kind(kind);
        self.build(ask, caller, builder, describe)
    }

    /// Starts a span that links another: below the current one, or the first of a trace of its own.
    #[cfg(feature = "durable")]
    pub(crate) fn start_linking<Name>(
        &self,
        ask: bool,
        anew: bool,
        linked: Option<SpanContext>,
        name: impl FnOnce() -> Name,
        kind: SpanKind,
        describe: impl Fn() -> Vec<KeyValue>,
    ) -> Option<Started>
    where
        Name: Into<Cow<'static, str>>,
    {
        let nothing = anew.then(Context::new);
        let builder = || linking(name(), kind, linked);
        self.build(ask, nothing.as_ref(), builder, describe)
    }

    fn build(
        &self,
        ask: bool,
        caller: Option<&Context>,
        builder: impl FnOnce() -> SpanBuilder,
        describe: impl Fn() -> Vec<KeyValue>,
    ) -> Option<Started> {
        let known = self.tracer.get();
        if known.is_none() && !ask {
            return None;
        }
        let found = known
            .is_none()
            .then(|| Arc::new(global::tracer_with_scope(scope())) as Arc<dyn Starts>);
        let tracer = known.or(found.as_ref())?;
        let started = Context::map_current(|current| {
            if current.is_telemetry_suppressed() {
                return None;
            }
            let parent = caller.unwrap_or(current);
            if known.is_some() && !self.offers_all && is_refused(&parent.span()) {
                return Some(below(parent.span().span_context()));
            }
            let started = self.ask(&**tracer, builder(), parent, describe)?;
            Some(match caller {
                Some(_) => started.current_below(parent),
                None => started,
            })
        });
        if let (Some(_), Some(found)) = (&started, found) {
            // It gave a span, so it is real; whoever was first has set it.
            self.tracer.get_or_init(|| found);
        }
        started
    }

    fn ask(
        &self,
        tracer: &dyn Starts,
        mut builder: SpanBuilder,
        parent: &Context,
        describe: impl Fn() -> Vec<KeyValue>,
    ) -> Option<Started> {
        let span = parent.span();
        let above = span.span_context();
        let bare = above.is_valid() && !above.is_sampled() && !self.offers_all;
        // The wall clock is read where a span is likely to record: it costs as much as what is left out here.
        let began = (!bare).then(|| SystemClock.now());
        builder.start_time = began;
        builder.attributes = (!bare).then(&describe);
        match tracer.start(builder, parent) {
            Begun::Recording(context) => {
                if bare {
                    context.span().set_attributes(describe());
                }
                let began = began.unwrap_or_else(|| SystemClock.now());
                Some(Started::Recording(Recorded { context, began }))
            }
            // The no-op tracer hands out the span that it found above, or an invalid one.
            Begun::Unsampled(own) if !own.is_valid() || own.span_id() == above.span_id() => None,
            Begun::Unsampled(own) => {
                let identity = keep_random(own, above);
                let context =
                    (!above.is_valid()).then(|| parent.with_remote_span_context(identity.clone()));
                Some(Started::Unsampled { identity, context })
            }
        }
    }
}

#[cfg(feature = "durable")]
fn linking(
    name: impl Into<Cow<'static, str>>,
    kind: SpanKind,
    linked: Option<SpanContext>,
) -> SpanBuilder {
    let links = linked.into_iter().map(Link::with_context).collect();
    let builder = SpanBuilder::from_name(name).with_kind(kind);
    builder.with_links(links)
}

/// Tells whether the sampler of this process has refused the span.
///
/// What came from another process it has not seen; what records without being sampled it has not refused.
fn is_refused(span: &SpanRef<'_>) -> bool {
    let identity = span.span_context();
    identity.is_valid() && !identity.is_sampled() && !identity.is_remote() && !span.is_recording()
}

/// Not sampled, below a span that is not sampled either.
fn below(above: &SpanContext) -> Started {
    let identity = SpanContext::new(
        above.trace_id(),
        SpanId::from(fastrand::u64(1..)),
        above.trace_flags() & RANDOM,
        false,
        above.trace_state().clone(),
    );
    Started::Unsampled {
        identity,
        context: None,
    }
}

/// The flag belongs to the trace id: whoever passes the id on must not clear it.
fn keep_random(own: SpanContext, above: &SpanContext) -> SpanContext {
    let lost = above.trace_flags() & RANDOM;
    if own.trace_id() != above.trace_id() || own.trace_flags() & lost == lost {
        return own;
    }
    SpanContext::new(
        own.trace_id(),
        own.span_id(),
        own.trace_flags() | lost,
        own.is_remote(),
        own.trace_state().clone(),
    )
}

impl Started {
    /// Makes it current inside, although nothing records: the context above is not current.
    fn current_below(self, above: &Context) -> Self {
        match self {
            Self::Unsampled {
                identity,
                context: None,
            } => Self::Unsampled {
                context: Some(above.with_remote_span_context(identity.clone())),
                identity,
            },
            started => started,
        }
    }

    /// Calls `f` with what the request must carry.
    pub(crate) fn with_identity<R>(&self, f: impl FnOnce(&SpanContext) -> R) -> R {
        match self {
            Self::Recording(recorded) => f(recorded.context.span().span_context()),
            Self::Unsampled { identity, .. } => f(identity),
        }
    }

    /// Returns the context that must be current inside, if it is another than outside.
    pub(crate) fn context(&self) -> Option<&Context> {
        match self {
            Self::Recording(recorded) => Some(&recorded.context),
            Self::Unsampled { context, .. } => context.as_ref(),
        }
    }

    /// Tells whether anything of it must be kept until its end.
    pub(crate) const fn lasts(&self) -> bool {
        !matches!(self, Self::Unsampled { context: None, .. })
    }

    pub(crate) fn recorded(&self) -> Option<&Recorded> {
        match self {
            Self::Recording(recorded) => Some(recorded),
            Self::Unsampled { .. } => None,
        }
    }
}

impl Recorded {
    pub(crate) fn rename(&self, name: &'static str) {
        self.context.span().update_name(name);
    }

    /// Ends the span, as long after its start as was measured on the monotonic clock.
    pub(crate) fn end(
        &self,
        elapsed: Duration,
        attributes: impl IntoIterator<Item = KeyValue>,
        error: Option<Cow<'static, str>>,
    ) {
        let span = self.context.span();
        let status = error.is_some().then(|| Status::error(""));
        let error = error.into_iter();
        let error = error.map(|error| KeyValue::new(ERROR_TYPE, error));
        span.set_attributes(attributes.into_iter().chain(error));
        if let Some(status) = status {
            span.set_status(status);
        }
        span.end_with_timestamp(self.began + elapsed);
    }
}

/// Makes a context current while `f` runs.
#[inline]
pub(crate) fn within<R>(context: Option<&Context>, f: impl FnOnce() -> R) -> R {
    let _attached = context.map(|context| context.clone().attach());
    f()
}

/// A tracer, whatever its type of span. What does not record is never boxed.
trait Starts: Send + Sync {
    fn start(&self, builder: SpanBuilder, parent: &Context) -> Begun;
}

enum Begun {
    Recording(Context),
    Unsampled(SpanContext),
}

impl<T> Starts for T
where
    T: Tracer<Span: Send + Sync + 'static> + Send + Sync,
{
    fn start(&self, builder: SpanBuilder, parent: &Context) -> Begun {
        use opentelemetry::trace::Span;
        let span = self.build_with_context(builder, parent);
        if span.is_recording() {
            Begun::Recording(parent.with_span(span))
        } else {
            Begun::Unsampled(span.span_context().clone())
        }
    }
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spans")
            .field("found", &self.tracer.get().is_some())
            .finish_non_exhaustive()
    }
}
