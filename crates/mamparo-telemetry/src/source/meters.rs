//! Finding instruments.

use std::fmt;
use std::sync::{Arc, OnceLock};

use opentelemetry::global;
use opentelemetry::metrics::MeterProvider;

use super::scope::scope;
use crate::metrics::Instruments;

/// Gives the instruments of a provider that was passed in or found.
#[derive(Clone)]
pub(crate) struct Meters {
    instruments: OnceLock<Arc<Instruments>>,
}

impl Meters {
    /// Asks for the global provider until there is one.
    pub(crate) const fn global() -> Self {
        Self {
            instruments: OnceLock::new(),
        }
    }

    pub(crate) fn given(provider: &dyn MeterProvider) -> Self {
        Self {
            instruments: OnceLock::from(instruments(provider)),
        }
    }

    /// `ask` says whether to ask for a global provider, if none is known.
    pub(crate) fn find(&self, ask: impl FnOnce() -> bool) -> Option<&Arc<Instruments>> {
        let found = self.instruments.get();
        if found.is_some() || !ask() {
            return found;
        }
        let provider = global::meter_provider();
        // The API's own no-op is the one provider that holds nothing at all.
        if size_of_val(&*provider) == 0 {
            return None;
        }
        Some(self.instruments.get_or_init(|| instruments(&*provider)))
    }
}

fn instruments(provider: &dyn MeterProvider) -> Arc<Instruments> {
    Arc::new(Instruments::new(&provider.meter_with_scope(scope())))
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meters")
            .field("found", &self.instruments.get().is_some())
            .finish_non_exhaustive()
    }
}
