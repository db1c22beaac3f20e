//! Whose spans and metrics these are.

use opentelemetry::InstrumentationScope;

use crate::semconv;

/// Our instrumentation scope; it allocates nothing.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(semconv::SCOPE)
        .with_version(env!("CARGO_PKG_VERSION"))
        .with_schema_url(semconv::SCHEMA_URL)
        .build()
}
